// Resolution decides when to look up one server's name, and what each result changes. Pure: time and random
// numbers are arguments. Resolver owns a Resolution for each name.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/net/dns_lookup.hpp"
#include "weir/upstream/server_group.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace weir::upstream {

class Resolution {
 public:
  // Only the first kMostAddresses addresses of a name are used.
  static constexpr std::size_t kMostAddresses = 64;
  // The wait after a failed look-up, but at least `least` and at most `most` of the Period.
  static constexpr base::Duration kAfterFailure{2'000'000};

  // The time between two look-ups: the TTL of the answer, but at least `least` and at most `most`. `most`
  // varies randomly by a tenth, so that many weir processes do not query the name server together.
  // REQUIRES least <= most.
  struct Period {
    base::Duration least, most;
  };

  enum class Outcome : std::uint8_t {
    Same,     // the name has the known addresses, in any order
    Changed,  // the name has other addresses
    Failed,   // the look-up failed or returned no address; the known addresses stay in use
  };
  struct Step {
    Outcome outcome = Outcome::Same;
    bool turned = false;  // true: the look-up is the first failure, or the first success after failures
    // For Changed: the name's addresses now. Addresses that were known come first, in their old order.
    Addresses addresses{};
  };

  // The first look-up is due after `period.least`, because the TTL of the known addresses is unknown.
  // `unknown`: true if a look-up has failed already and no address is known. If `unknown` is true, the first
  // look-up is due after kAfterFailure.
  Resolution(Period period, base::TimePoint now, bool unknown = false) noexcept;

  [[nodiscard]] base::TimePoint due() const noexcept { return due_; }
  // Records a result, and sets the time of the next look-up. `ttl`: see net::NameAnswer. `random`: any 64
  // bits. Returns true for the first failure, and for the first success after failures.
  bool note(bool failed, std::optional<base::Duration> ttl, base::TimePoint now, std::uint64_t random);
  // Like note(), but also compares the addresses in the answer with the `known` addresses, and returns the
  // change.
  [[nodiscard]] Step take(const Addresses& known, const base::Result<net::NameAnswer>& answer,
                          base::TimePoint now, std::uint64_t random);

 private:
  [[nodiscard]] base::Duration after_failure() const noexcept;
  [[nodiscard]] base::Duration after_answer(std::optional<base::Duration> ttl,
                                            std::uint64_t random) const noexcept;

  Period period_;
  bool failing_;
  base::TimePoint due_;
};

// Returns the addresses of a name that weir uses: the first Resolution::kMostAddresses.
[[nodiscard]] Addresses first_addresses(Addresses addresses);

}  // namespace weir::upstream
