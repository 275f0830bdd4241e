// The decisions about requests that the counters distinguish.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::observe {

enum class Verdict : std::uint8_t {  // in the order of policy::Verdict
  Admitted,                          // admitted at once
  Delayed,                           // admitted with a later departure
  Refused,                           // refused by a rule, at once or while the request waited
};
inline constexpr std::size_t kVerdicts = 3;
inline constexpr std::array<const char*, kVerdicts> kVerdictNames{"admitted", "delayed", "refused"};

}  // namespace weir::observe
