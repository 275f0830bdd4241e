// Sums over the counters of all workers.
#pragma once

#include "weir/admin/sources.hpp"

#include <cstdint>

namespace weir::admin {

// Returns the sum of the results of `read` over the counters of all workers.
template <class Read>
[[nodiscard]] std::uint64_t total(const Sources& sources, Read read) {
  std::uint64_t sum = 0;
  for (const auto* counters : sources.counters) sum += static_cast<std::uint64_t>(read(*counters));
  return sum;
}

// Returns the number of decisions of this rule with this outcome. REQUIRES rule < sources.rules.size().
[[nodiscard]] inline std::uint64_t total(const Sources& sources, std::size_t rule,
                                         observe::RuleOutcome outcome) {
  return total(sources, [&](const observe::Counters& counters) {
    return counters.decisions(sources.rules[rule].index, outcome).value();
  });
}

// Returns the number of requests with this verdict.
[[nodiscard]] inline std::uint64_t total(const Sources& sources, observe::Verdict verdict) {
  return total(sources,
               [&](const observe::Counters& counters) { return counters.verdicts(verdict).value(); });
}

}  // namespace weir::admin
