// Expected costs that responses report, for tests.
#pragma once

#include "weir/policy/settlement.hpp"

#include <cstddef>
#include <ostream>

namespace weir::policy {

inline void PrintTo(const ReportedCost& told, std::ostream* out) {
  constexpr const char* kStates[] = {"amount ", "nothing ", "unreadable "};
  *out << kStates[static_cast<std::size_t>(told.state)] << told.amount;
}
inline bool operator==(const ReportedCost& a, const ReportedCost& b) {
  return a.state == b.state && a.amount == b.amount;
}

inline constexpr ReportedCost kNothing{ReportedCost::State::Nothing};
inline constexpr ReportedCost kUnreadable{ReportedCost::State::Unreadable};
inline constexpr ReportedCost amount(limit::Cost cost) {
  return {ReportedCost::State::Amount, cost};
}

}  // namespace weir::policy
