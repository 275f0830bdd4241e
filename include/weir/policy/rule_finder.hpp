// Finds the rules that a request may match, without testing all rules. Pure. Immutable once it is built, so
// any number of threads may use it.
#pragma once

#include "weir/policy/routing/match_index.hpp"
#include "weir/policy/routing/question_index.hpp"
#include "weir/policy/rule_list.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::policy {

class RuleFinder {
 public:
  RuleFinder() = default;
  // REQUIRES: at most 65,536 rules.
  explicit RuleFinder(std::span<const Rule> rules);

  // The buffers of find(). Reusing the object reuses their memory.
  struct Scratch {
    std::vector<MatchIndex::Position> positions;
    std::vector<const Rule*> rules;
  };
  // Returns the rules that may apply to the request, in order. Omits rules whose conditions on host, method,
  // path, domain or descriptors do not hold, but not all of them: testing MatchIndex::kFew rules takes no
  // longer than a search. The list refers to `scratch`, which find() overwrites. REQUIRES: `rules` are
  // those of the constructor. Throws only std::bad_alloc.
  [[nodiscard]] RuleList find(std::span<const Rule> rules, const Request& request, Scratch& scratch) const;

 private:
  MatchIndex for_requests_;      // all other rules than those of for_questions_
  QuestionIndex for_questions_;  // the rules that apply to questions only
  bool returns_all_ = true;      // find() returns all rules: they are few, and none is for questions only
};

// Which rules first_beyond() counts: those whose key every request has, or nearly every request.
enum class Reach : std::uint8_t {
  Every,  // only rules whose key every request has: ip, method, path, or any key with on_missing = "ip"
  // also rules whose key nearly every request has (host, route, upstream), and rules that reject requests
  // without the key
  Usual,
};

// Returns the first rule such that this rule and the rules before it make more than `most` charges for one
// request; null if there is none. Counts only rules that have no conditions except on host, method and path,
// and whose key satisfies `reach`. An elastic rule makes two charges. The running time grows with the square
// of the number of rules.
[[nodiscard]] const Rule* first_beyond(std::span<const Rule> rules, std::size_t most,
                                       Reach reach = Reach::Every);

}  // namespace weir::policy
