// Finds the rules that apply to questions only, by the domain and the descriptors of the question. So these
// rules cost other requests no time, and a question does not test the rules of other domains and descriptors.
//
//   domain ─► key of a descriptor ─► value ─► MatchIndex (host, method, path)
//
// Pure. Immutable once it is built, so any number of threads may use it.
#pragma once

#include "weir/policy/routing/match_index.hpp"
#include "weir/policy/rule.hpp"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace weir::policy {

class QuestionIndex {
 public:
  using Position = MatchIndex::Position;

  QuestionIndex() = default;
  // REQUIRES: at most 65,536 rules.
  explicit QuestionIndex(std::span<const Rule> rules);

  // Returns true if the rule can apply to questions only. The index contains exactly these rules.
  [[nodiscard]] static bool is_for_questions(const Rule& rule) noexcept;

  [[nodiscard]] bool empty() const noexcept { return by_domain_.empty(); }

  // Appends the positions of the rules that may apply to the question. Appends them in any order, and a
  // position may repeat. Throws only std::bad_alloc.
  void append(const Request& request, std::vector<Position>& positions) const;

 private:
  template <class Value>
  using ByName = std::map<std::string, Value, std::less<>>;
  // The rules that need a value for one key of a descriptor.
  struct OfKey {
    MatchIndex any_value;
    ByName<MatchIndex> by_value;  // the rules that need exactly this value
  };
  // The rules of one domain. A rule that needs values for several keys is listed under one of them.
  struct OfDomain {
    // The rules that need no key: those without descriptors, and those whose on_missing is not "skip".
    MatchIndex without_key;
    ByName<OfKey> by_key;
  };
  // A place of a rule in the index. An empty `domain` stands for any domain, an empty `key` for no key, and
  // an empty `value` for any value.
  struct Path {
    std::string domain, key, value;
    auto operator<=>(const Path&) const = default;
  };

  [[nodiscard]] static std::vector<Path> paths_of(const Rule& rule);
  [[nodiscard]] MatchIndex& at(const Path& path);
  static void append(const OfDomain& rules, const Request& request, std::vector<Position>& positions);

  ByName<OfDomain> by_domain_;  // the empty name stands for every domain
};

}  // namespace weir::policy
