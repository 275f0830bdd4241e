// Finds the rules that a request may match, without testing all rules. So rules for other hosts, methods and
// paths cost no time.
//
//   host ─► method ─► sorted path patterns; each refers to the longest other pattern that is its prefix
//
// Pure. Immutable once it is built, so any number of threads may use it.
#pragma once

#include "weir/policy/rule_list.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

class RuleFinder {
 public:
  // With at most this number of rules, weir tests every rule, because that takes no longer than a search.
  static constexpr std::size_t kFew = 16;

  RuleFinder() = default;
  // REQUIRES: at most 65,536 rules.
  explicit RuleFinder(std::span<const Rule> rules);

  // Returns the rules whose conditions on host, method and path may hold for the request. Does not test other
  // conditions. Considers every interpretation of the path, so that the result includes rules that apply to
  // only one of them. The list refers to `room`, which find() overwrites. REQUIRES: `rules` are those of the
  // constructor. Throws only std::bad_alloc.
  [[nodiscard]] RuleList find(std::span<const Rule> rules, const Request& request,
                              std::vector<const Rule*>& room) const;

 private:
  using Position = std::uint16_t;  // the position of a rule in the configuration
  struct Pattern {
    std::string text;  // without its '*'; empty for regular expressions and for rules without a path
    std::size_t parent = kNone;     // the position of the longest other pattern that is a prefix of `text`
    std::vector<Position> rules{};  // the rules with this pattern
  };
  using Patterns = std::vector<Pattern>;  // sorted by text
  template <class Value>
  using ByName = std::map<std::string, Value, std::less<>>;
  static constexpr std::size_t kNone = ~std::size_t{0};

  void add(const Rule& rule, Position position, const std::string& host, std::string_view method);
  template <class Visit>
  void for_each(const Request& request, std::string_view path, Visit visit) const;

  // The patterns by host, then by method. At the host level, the empty name stands for every host and for
  // host patterns; at the method level, for every method. The map is empty if there are few rules.
  ByName<ByName<Patterns>> by_host_;
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
