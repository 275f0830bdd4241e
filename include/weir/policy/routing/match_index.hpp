// Finds the rules or routes that a request may match, without testing all of them. So rules and routes for
// other hosts, methods and paths cost no time.
//
//   host ─► method ─► sorted path patterns; each refers to the longest other pattern that is its prefix
//
// Pure. Immutable once it is built, so any number of threads may use it.
#pragma once

#include "weir/policy/match.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

class MatchIndex {
 public:
  // With at most this number of matches, the caller tests each of them, because that takes no longer than a
  // search.
  static constexpr std::size_t kFew = 16;

  // The position of a match in the list that the index was built from.
  using Position = std::uint16_t;

  MatchIndex() = default;
  // REQUIRES: at most 65,536 matches.
  explicit MatchIndex(std::span<const Match* const> matches);
  // Indexes only the matches at these positions.
  MatchIndex(std::span<const Match* const> matches, std::vector<Position> positions);

  // Stores the positions of the matches whose conditions on host, method and path may hold for the request,
  // in ascending order. Does not test other conditions. Considers every interpretation of the path, so that
  // the result includes matches that hold for only one of them. Returns false if the caller must test all
  // matches; `positions` is then meaningless. Throws only std::bad_alloc.
  [[nodiscard]] bool find(const Request& request, std::vector<Position>& positions) const;

  // Appends the positions that find() would store; all positions if find() would return false. Appends them
  // in any order, and a position may repeat. Throws only std::bad_alloc.
  void append(const Request& request, std::vector<Position>& positions) const;

 private:
  struct Pattern {
    std::string text;  // without its '*'; empty for regular expressions and for matches without a path
    std::size_t parent = kNone;          // the index of the longest other pattern that is a prefix of `text`
    std::vector<Position> matches = {};  // the matches with this pattern
  };
  using Patterns = std::vector<Pattern>;  // sorted by text
  template <class Value>
  using ByName = std::map<std::string, Value, std::less<>>;
  static constexpr std::size_t kNone = ~std::size_t{0};

  [[nodiscard]] bool is_searchable(const Request& request) const noexcept;
  void add(const Match& match, Position position, const std::string& host, std::string_view method);
  void add_path(const Request& request, std::string_view path, std::vector<Position>& positions) const;
  void add_host(std::string_view host, std::string_view method, std::string_view path,
                std::vector<Position>& positions) const;

  std::vector<Position> all_;  // the positions of all matches of the index
  // The patterns by host, then by method. A host that begins with a dot stands for all hosts that end with it
  // ("*.example.com"). The empty host stands for every host, and for hosts given by a regular expression. The
  // empty method stands for every method. The map is empty if there are few matches.
  ByName<ByName<Patterns>> by_host_;
  std::size_t longest_suffix_ = 0;  // octets of the longest host that begins with a dot
};

}  // namespace weir::policy
