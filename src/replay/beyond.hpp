// Finds the facts of a request that a rule needs and that the log does not contain.
#pragma once

#include "weir/policy/match.hpp"
#include "weir/policy/rule.hpp"

#include <string>
#include <vector>

namespace weir::replay {

// Returns the first fact that the rule needs and that the log lacks, such as "the header X-Tenant" or "the
// body". Returns an empty text if the log has all facts that the rule needs.
[[nodiscard]] std::string beyond_log(const policy::Match& match);
[[nodiscard]] std::string beyond_log(const policy::Rule& rule);

// Returns which part of a question the rule needs: "the domain" or "the descriptor". Returns an empty text if
// the rule needs neither. Only lines with the field "question" have these parts.
[[nodiscard]] std::string asked_of_questions(const policy::Rule& rule);

// Returns the names of the descriptor entries that the rule's conditions compare with texts. A line may hide
// the values of these entries (LoggedQuestion::hidden).
[[nodiscard]] std::vector<std::string> compared_descriptors(const policy::Rule& rule);

// Returns the names of the query parameters that the rule needs. A log has the values of these parameters,
// except those that weir hid as secrets when it wrote the log (policy::hides_value). Each log line says which
// values are hidden.
[[nodiscard]] std::vector<std::string> asked_parameters(const policy::Match& match);
[[nodiscard]] std::vector<std::string> asked_parameters(const policy::Rule& rule);

}  // namespace weir::replay
