#include "weir/limit/adapt.hpp"

#include <algorithm>
#include <cassert>

namespace weir::limit {

bool is_unwell(const AdaptTerms& terms, const UpstreamAnswers& answers) noexcept {
  if (answers.all < kLeastAnswers) return false;
  if (terms.errors_above && answers.failed >= kLeastFailures &&
      answers.failed * 100 > answers.all * *terms.errors_above)
    return true;
  return terms.latency_above && answers.measured != 0 &&
         answers.time / static_cast<base::Duration::rep>(answers.measured) > *terms.latency_above;
}

Factor adapted(const AdaptTerms& terms, const UpstreamAnswers& answers, Factor factor) noexcept {
  if (is_unwell(terms, answers)) return std::max(terms.floor, static_cast<Factor>(factor / 2));
  return std::min(kWholeFactor, static_cast<Factor>(factor + 1));
}

namespace {

struct Scale {
  Factor factor;
  Cost least;

  [[nodiscard]] std::uint64_t share_of(std::uint64_t units) const noexcept {
    return std::max(units * factor / kWholeFactor, least);
  }
  // Returns a rate of `factor` twentieths of `rate`: the same count in a longer period. The count must not
  // change, because the states of buckets are in units of 1/count µs.
  [[nodiscard]] Rate slower(const Rate& rate) const noexcept {
    const auto period = rate.period.count();
    return {rate.count, base::Duration((period * kWholeFactor + factor - 1) / factor)};
  }
  template <class L>
  static base::Result<Limiter> wrapped(const base::Result<L>& limiter) {
    if (!limiter) return limiter.error();
    return Limiter(*limiter);
  }

  base::Result<Limiter> operator()(const TokenBucket& bucket) const {
    return wrapped(TokenBucket::make(slower(bucket.gcra_core().rate()), share_of(bucket.quota())));
  }
  base::Result<Limiter> operator()(const Gcra& gcra) const {
    return wrapped(Gcra::make(slower(gcra.gcra_core().rate()), share_of(gcra.quota()) - 1));
  }
  base::Result<Limiter> operator()(const FixedWindow& window) const {
    return Limiter(window.with_limit(share_of(window.quota())));
  }
  base::Result<Limiter> operator()(const SlidingWindow& window) const {
    return wrapped(SlidingWindow::make({share_of(window.quota()), window.rate().period}));
  }
  base::Result<Limiter> operator()(const SlidingLog& log) const {
    const Rate rate{share_of(log.quota()), log.rate().period};
    return wrapped(log.is_exact() ? SlidingLog::make(rate) : SlidingLog::make(rate, log.buckets()));
  }
  base::Result<Limiter> operator()(const Concurrency& limiter) const {
    return wrapped(Concurrency::make(share_of(limiter.quota())));
  }
  template <class L>
  base::Result<Limiter> operator()(const L& limiter) const {
    assert(!can_scale(limiter));
    return Limiter(limiter);
  }
};

}  // namespace

bool can_scale(const Limiter& limiter) noexcept {
  return !std::holds_alternative<LeakyBucket>(limiter) && !std::holds_alternative<SteppedBucket>(limiter) &&
         !std::holds_alternative<AdaptiveConcurrency>(limiter);
}

base::Result<Limiter> scaled(const Limiter& limiter, Factor factor, Cost least) {
  assert(factor >= 1 && factor <= kWholeFactor && least >= 1);
  // Raises a scaled limit below `least` to `least`, but never above the quota of `limiter`. So a cost above
  // that quota does not fit the scaled limiter either.
  return std::visit(Scale{factor, std::min<Cost>(least, std::max<Cost>(quota(limiter), 1))}, limiter);
}

}  // namespace weir::limit
