// What look-ups of one server's name come to, one after another: plain values, time and chance are arguments.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/upstream/fleet.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::upstream {

class Resolution {
 public:
  // Of a name; one that stands for more has the others left out.
  static constexpr std::size_t kMostAddresses = 64;

  enum class Outcome : std::uint8_t {
    Same,     // the addresses that were known, in whatever order
    Changed,  // others
    Failed,   // there was no answer, or an empty one: what was known stays
  };
  struct Step {
    Outcome outcome = Outcome::Same;
    bool turned = false;    // the first that failed, or the first that did not after that
    Addresses addresses{};  // Changed: what the name stands for. Those that stay keep their order.
  };

  // While no address is known, look-ups are as frequent as this, or as the period where that is shorter.
  static constexpr base::Duration kWhileUnknown{2'000'000};

  // The first look-up is due a period from now, each next one a period after an answer; a tenth more or less,
  // so that many weirs do not ask together for ever. `random`: any 64 bits. `unknown`: a look-up has failed
  // already, and no address is known.
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
