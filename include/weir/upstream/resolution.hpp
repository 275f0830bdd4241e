// Resolution decides when to look up one server's name, and what each result changes. Pure: time and random
// numbers are arguments. Resolver owns a Resolution for each name.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/upstream/server_group.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::upstream {

class Resolution {
 public:
  // Only the first kMostAddresses addresses of a name are used.
  static constexpr std::size_t kMostAddresses = 64;

  enum class Outcome : std::uint8_t {
    Same,     // the name has the known addresses, in any order
    Changed,  // the name has other addresses
    Failed,   // the look-up failed or returned no address; the known addresses stay in use
  };
  struct Step {
    Outcome outcome = Outcome::Same;
    bool turned = false;  // this is the first failure, or the first success after failures
    // For Changed: the name's addresses now. Addresses that were known come first, in their old order.
    Addresses addresses{};
  };

  // The interval of look-ups while no address is known, unless `period` is shorter.
  static constexpr base::Duration kWhileUnknown{2'000'000};

  // The first look-up is due one period from now, and each later one a period after the last answer. The
  // period varies randomly by a tenth, so that many weir processes do not query the name server together.
  // `random`: any 64 bits. `unknown` is true if a look-up has failed already and no address is known.
  Resolution(base::Duration period, base::TimePoint now, std::uint64_t random, bool unknown = false) noexcept;

  [[nodiscard]] base::TimePoint due() const noexcept { return due_; }
  [[nodiscard]] Step take(const Addresses& known, const base::Result<Addresses>& answer, base::TimePoint now,
                          std::uint64_t random);

 private:
  [[nodiscard]] base::TimePoint after(base::TimePoint now, std::uint64_t random, bool unknown) const noexcept;

  base::Duration period_;
  base::TimePoint due_;
  bool failing_;
};

}  // namespace weir::upstream
