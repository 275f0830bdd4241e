// Adapts the limit of a rule to the condition of an upstream (the setting `adapt`).
//
// Once a period, weir looks at the answers of the upstream in that period. While the upstream is unwell, the
// rule's factor is halved. Otherwise the factor grows by one step. The rule grants its limit times its
// factor.
//
//   answers of one period ──► is_unwell() ──► adapted() ──► Factors ──► scaled limiter of a request
//
// This is additive increase, multiplicative decrease (AIMD). Chiu and Jain show that AIMD converges to a
// fair and efficient load, and that other linear controls do not ("Analysis of the Increase and Decrease
// Algorithms", 1989). TCP's congestion control also uses AIMD (RFC 5681 §3.1).
//
// The constants:
// * kAdaptPeriod, 1 s: TCP reacts once a round trip. An answer takes less than a second unless the upstream
//   is very slow, so the answers of a period show the effect of the factor of the period before.
// * The decrease by half is that of RFC 5681 §3.1. It lets a queue at the upstream drain.
// * The increase of 1/20 of the limit lets the factor grow from 20 % to 100 % in 16 s. The factor meets the
//   upstream's capacity with a precision of 5 % of the limit. Few steps also mean few limiters, because weir
//   makes one limiter for each reduced factor in advance.
// * kLeastAnswers, 10: fewer answers say too little about the upstream. The factor then grows, as after good
//   answers. So a factor recovers even if it is so low that weir refuses nearly every request.
// * kLeastFailures, 3: if AdaptTerms::errors_above is 5 %, for example, a single failure among 10 to 19
//   answers exceeds this bound. Because three failures are needed, an upstream with 2 % failed answers is
//   seldom unwell. docs/design/adapt.md has figures.
//
// A key has one state, whatever the factor. A window, a log or a concurrency limit compares its count with
// the scaled limit, which is lower. A bucket keeps its TAT (limit/gcra_core.hpp) and takes as long to fill,
// but each unit moves the TAT further: twice as far under a factor of one half. So a scaled limit admits
// nothing that the whole limit would refuse.
//
// There is one exception. scaled() keeps the burst of a bucket at `least` units, even if the factor would
// make it smaller. A key that has used its whole burst may then use the difference at once.
//
// In two cases, weir may forget units that a key has used beyond the scaled limit, so that the key can use
// them again. The first is a reload that changes the limit. The second is an overflow cell that several
// limiters share.
//
// Pure, apart from Factors.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/limiter.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace weir::limit {

// The share of a limit that a rule grants, in twentieths: 1 to kWholeFactor.
using Factor = std::uint8_t;
inline constexpr Factor kWholeFactor = 20;
[[nodiscard]] constexpr unsigned percent_of(Factor factor) noexcept {
  return factor * (100U / kWholeFactor);
}

inline constexpr base::Duration kAdaptPeriod{1'000'000};
inline constexpr std::uint64_t kLeastAnswers = 10;
inline constexpr std::uint64_t kLeastFailures = 3;

// The settings of a rule's `adapt`: the bounds beyond which its upstream is unwell, and the lowest factor. At
// least one bound is set.
struct AdaptTerms {
  std::optional<base::Duration> latency_above{};  // bound on the mean time to the answer's head
  std::optional<unsigned> errors_above{};         // bound on the percentage of answers that failed
  Factor floor = 4;
  friend bool operator==(const AdaptTerms&, const AdaptTerms&) = default;
};

// The answers of an upstream in one period.
struct UpstreamAnswers {
  std::uint64_t all = 0;       // answers, and attempts for which the upstream gave no answer
  std::uint64_t failed = 0;    // part of `all`: answers with a status of 5xx, and attempts without an answer
  std::uint64_t measured = 0;  // part of `all`: answers, and attempts that ran out of time
  // The sum of the times from request to answer's head, over all answers and attempts in `measured`.
  base::Duration time{0};
  friend bool operator==(const UpstreamAnswers&, const UpstreamAnswers&) = default;
};

// Returns true if the mean time is above terms.latency_above, or the percentage of failures is above
// terms.errors_above. Returns false if there are fewer than kLeastAnswers answers. Fewer than kLeastFailures
// failures are ignored, whatever their percentage.
[[nodiscard]] bool is_unwell(const AdaptTerms& terms, const UpstreamAnswers& answers) noexcept;

// Returns the factor for the next period. `answers`: the answers of the period that ends now. `factor`: the
// factor of that period.
[[nodiscard]] Factor adapted(const AdaptTerms& terms, const UpstreamAnswers& answers, Factor factor) noexcept;

// Returns true if scaled() can scale the limiter. Returns false for queues, stepwise refills and adaptive
// concurrency.
[[nodiscard]] bool can_scale(const Limiter& limiter) noexcept;

// Returns a limiter with `factor` twentieths of the limit and of the burst. Rounds down, but grants at least
// `least` units and at most the whole limit. A key's state can be used with both limiters. Returns an error
// if the scaled bucket would take over 100 years to fill. REQUIRES: can_scale(limiter), least ≥ 1, and factor
// from 1 to kWholeFactor.
[[nodiscard]] base::Result<Limiter> scaled(const Limiter& limiter, Factor factor, Cost least);

// The present factor of each rule, by policy::Rule::index. server::ConfigSnapshots owns the object. The main
// thread sets the factors; any thread may read them.
class Factors {
 public:
  Factors() {
    for (auto& factor : factors_) factor.store(kWholeFactor, std::memory_order_relaxed);
  }
  [[nodiscard]] Factor of(RuleIndex rule) const noexcept {
    return factors_[rule].load(std::memory_order_relaxed);
  }
  void set(RuleIndex rule, Factor factor) noexcept {
    factors_[rule].store(factor, std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<Factor>, kMaxRules> factors_;
};

}  // namespace weir::limit
