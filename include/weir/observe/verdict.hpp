// The verdict of a request that was decided.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::observe {

enum class Verdict : std::uint8_t {  // in the order of policy::Verdict
  Admitted,                          // at once
  Delayed,                           // admitted, with a later departure
  Refused,                           // by a rule, at once or during its wait
};
inline constexpr std::size_t kVerdicts = 3;
inline constexpr std::array<const char*, kVerdicts> kVerdictNames{"admitted", "delayed", "refused"};

}  // namespace weir::observe
