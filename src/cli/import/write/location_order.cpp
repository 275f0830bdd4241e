#include "cli/import/write/location_order.hpp"

#include "cli/import/syntax/nginx_values.hpp"

#include "weir/policy/routing/patterns.hpp"

#include <algorithm>

namespace weir::cli::nginx {

namespace {

bool is_expression(const Location& location) {
  return location.modifier == Modifier::Regex || location.modifier == Modifier::RegexNoCase;
}

// Returns the path with octets beyond ASCII as %XX.
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

// Returns the pattern of a location; empty for all paths.
std::string pattern_of(const Location& location) {
  const auto path = is_expression(location) ? location.path : ascii_path(location.path);
  const bool exact = location.modifier == Modifier::Exact;
  if (location.modifier == Modifier::Regex) return "~" + re2_notation(path);
  if (location.modifier == Modifier::RegexNoCase) return "~(?i)" + re2_notation(path);
  if (path == "/" && !exact) return {};
  const bool plain = path.find_first_of("*?#") == std::string::npos;
  if (plain) return exact ? path : path + "*";
  return "~^" + literal_pattern(path) + (exact ? "$" : "");
}

// Returns what is wrong with a pattern; empty if weir takes it.
std::string fault_of_pattern(const std::string& pattern) {
  if (pattern.empty()) return {};
  if (pattern.find("${") != std::string::npos) return "weir reads ${…} as a variable of the environment";
  const auto match = policy::PathMatch::parse(pattern);
  return match ? std::string() : match.error().message;
}

// Returns the pattern of all these prefixes together, in the normal form in which weir compares paths.
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

// Returns the prefixes below a location with ^~ that regular expressions may have precedence over.
std::vector<std::string> prefixes_below(const Location& outer, const std::vector<OrderedLocation>& all) {
  std::vector<std::string> below;
  for (const auto& [location, path, except] : all)
    if (location->modifier == Modifier::Prefix && location->path.size() > outer.path.size() &&
        location->path.starts_with(outer.path))
      below.push_back(path);
  return below;
}

// Places of locations in weir's order: exact ones, ^~, expressions, other prefixes.
unsigned rank_of(const Location& location, bool with_expressions) {
  if (location.modifier == Modifier::Exact) return 0;
  if (is_expression(location)) return 2;
  return location.modifier == Modifier::FirstPrefix && with_expressions ? 1 : 3;
}

}  // namespace

std::vector<OrderedLocation> order_locations(const std::vector<Location>& locations, Notes& notes) {
  std::vector<OrderedLocation> all;
  for (const auto& location : locations) {
    auto pattern = pattern_of(location);
    if (const auto fault = fault_of_pattern(pattern); !fault.empty())
      notes.add(location.place, "location",
                location.path + ": no equal; other locations take its requests: " + fault);
    else
      all.push_back({&location, std::move(pattern), {}});
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
