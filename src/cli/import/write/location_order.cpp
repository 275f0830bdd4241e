#include "cli/import/write/location_order.hpp"

#include "cli/import/syntax/nginx_values.hpp"
#include "cli/import/write/path_expression.hpp"

#include "weir/policy/routing/patterns.hpp"

#include <algorithm>

namespace weir::cli::nginx {

namespace {

bool is_expression(const Location& location) {
  return location.modifier == Modifier::Regex || location.modifier == Modifier::RegexNoCase;
}

// Returns the path with each byte beyond ASCII as %XX.
std::string ascii_path(std::string_view path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string written;
  for (const char c : path) {
    const auto octet = static_cast<unsigned char>(c);
    if (octet < 0x80)
      written += c;
    else
      written += {'%', kHex[octet >> 4], kHex[octet & 15]};
  }
  return written;
}

// Returns weir's path pattern for a location; empty if the location matches all paths. `expression`: the
// translated regular expression; used only if the location has one.
std::string pattern_of(const Location& location, const PathExpression& expression) {
  const auto path = is_expression(location) ? expression.pattern : ascii_path(location.path);
  const bool exact = location.modifier == Modifier::Exact;
  if (location.modifier == Modifier::Regex) return "~" + path;
  if (location.modifier == Modifier::RegexNoCase) return "~(?i)" + path;
  if (path == "/" && !exact) return {};
  const bool plain = path.find_first_of("*?#") == std::string::npos;
  if (plain) return exact ? path : path + "*";
  return "~^" + literal_pattern(path) + (exact ? "$" : "");
}

// Returns why weir rejects a pattern; empty if weir accepts it.
std::string fault_of_pattern(const std::string& pattern) {
  if (pattern.empty()) return {};
  if (pattern.find("${") != std::string::npos) return "weir reads ${…} as a variable of the environment";
  const auto match = policy::PathMatch::parse(pattern);
  return match ? std::string() : match.error().message;
}

// Returns one pattern that matches all paths that any of `prefixes` matches, in the normal form in which weir
// compares paths.
std::string pattern_of_all(const std::vector<std::string>& prefixes) {
  if (prefixes.size() <= 1) return prefixes.empty() ? std::string() : prefixes.front();
  std::string pattern = "~^(?:";
  for (const auto& prefix : prefixes) {
    const auto normal = policy::PathMatch::parse(prefix);
    const auto text = normal ? normal->describe() : prefix;
    if (!pattern.ends_with(':')) pattern += '|';
    pattern += text.starts_with("~^") ? text.substr(2) : literal_pattern(text.substr(0, text.size() - 1));
  }
  return pattern + ")";
}

// Returns the patterns of the plain prefixes below `outer`, a location with ^~. nginx prefers `outer` to
// regular expressions, but not for paths that begin with a longer plain prefix.
std::vector<std::string> prefixes_below(const Location& outer, const std::vector<OrderedLocation>& all) {
  std::vector<std::string> below;
  for (const auto& [location, path, except, closed] : all)
    if (location->modifier == Modifier::Prefix && location->path.size() > outer.path.size() &&
        location->path.starts_with(outer.path))
      below.push_back(path);
  return below;
}

// Returns the rank of a location in weir's order: 0 for exact paths, 1 for ^~ prefixes, 2 for regular
// expressions, 3 for other prefixes. `with_expressions`: false if the server has no regular expression; ^~
// then makes no difference.
unsigned rank_of(const Location& location, bool with_expressions) {
  if (location.modifier == Modifier::Exact) return 0;
  if (is_expression(location)) return 2;
  return location.modifier == Modifier::FirstPrefix && with_expressions ? 1 : 3;
}

constexpr const char* kSpelling = "weir spells some of its signs as %XX, or leaves them out";

// Returns true if nginx may refuse requests to the location. Then no other location may serve these requests.
bool may_refuse(const Location& location) {
  const auto& action = location.action;
  const bool refuses =
      action.scheme.empty() && action.status >= 400 && (!action.limited || action.status == 403);
  return refuses || !location.scope.access.empty() || !location.methods.empty();
}

// Returns a location that answers 403, in place of one whose regular expression weir cannot translate. Its
// pattern matches all paths that begin with `start`, so it matches every path that the expression may match.
OrderedLocation closed_location(const Location& location, const std::string& start, const std::string& fault,
                                Notes& notes) {
  notes.add(location.position, "location",
            location.path + ": no equal; weir answers 403 to all paths" +
                (start.empty() ? "" : " that begin with " + start) + ": " +
                (fault.empty() ? kSpelling : fault));
  const bool no_case = location.modifier == Modifier::RegexNoCase;
  auto path = start.empty() ? start : (no_case ? "~(?i)^" : "~^") + literal_pattern(start);
  return {&location, std::move(path), {}, true};
}

OrderedLocation inexact_location(const Location& location, std::string pattern, Notes& notes) {
  notes.add(location.position, "location",
            location.path + ": other locations may take some of its requests: " + kSpelling);
  return {&location, std::move(pattern), {}};
}

}  // namespace

std::vector<OrderedLocation> order_locations(const std::vector<Location>& locations, Notes& notes) {
  std::vector<OrderedLocation> all;
  for (const auto& location : locations) {
    const auto expression = is_expression(location) ? path_expression(location.path) : PathExpression{};
    auto pattern = pattern_of(location, expression);
    const auto fault = fault_of_pattern(pattern);
    if (fault.empty() && expression.exact)
      all.push_back({&location, std::move(pattern), {}});
    else if (is_expression(location) && may_refuse(location))
      all.push_back(closed_location(location, expression.start, fault, notes));
    else if (fault.empty())
      all.push_back(inexact_location(location, std::move(pattern), notes));
    else
      notes.add(location.position, "location",
                location.path + ": no equal; other locations take its requests: " + fault);
  }
  const bool with_expressions = std::any_of(
      all.begin(), all.end(), [](const OrderedLocation& entry) { return is_expression(*entry.location); });
  if (with_expressions)
    for (auto& entry : all)
      if (entry.location->modifier == Modifier::FirstPrefix)
        entry.except = pattern_of_all(prefixes_below(*entry.location, all));
  std::stable_sort(all.begin(), all.end(), [&](const OrderedLocation& a, const OrderedLocation& b) {
    const auto rank = rank_of(*a.location, with_expressions);
    const auto other = rank_of(*b.location, with_expressions);
    if (rank != other || rank == 0 || rank == 2) return rank < other;
    return a.location->path.size() > b.location->path.size();
  });
  return all;
}

}  // namespace weir::cli::nginx
