#include "config/warn/overlap.hpp"

#include "weir/http/head.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

namespace weir::config {

namespace {

bool is_exact(std::string_view path) {
  return !path.starts_with('~') && !path.ends_with('*');
}

// Returns the path as written in the configuration. Empty if there is no path, or if it is a regular
// expression, which this code does not analyse.
std::string plain_path(const policy::Match& match) {
  if (!match.path) return {};
  auto text = match.path->describe();
  return text.starts_with('/') ? text : std::string();
}

bool paths_disjoint(const policy::Match& a, const policy::Match& b) {
  const auto left = plain_path(a);
  const auto right = plain_path(b);
  if (!left.empty() && is_exact(left) && b.path) return !b.path->holds(left);
  if (!right.empty() && is_exact(right) && a.path) return !a.path->holds(right);
  if (left.empty() || right.empty()) return false;
  const auto l = std::string_view(left).substr(0, left.size() - 1);
  const auto r = std::string_view(right).substr(0, right.size() - 1);
  return !l.starts_with(r) && !r.starts_with(l);
}

// Returns true if `wide` contains all texts of `narrow`. An empty list allows every text.
bool any_covers(const std::vector<std::string>& wide, const std::vector<std::string>& narrow) {
  const auto in_wide = [&](const std::string& text) {
    return std::find(wide.begin(), wide.end(), text) != wide.end();
  };
  return wide.empty() || (!narrow.empty() && std::all_of(narrow.begin(), narrow.end(), in_wide));
}

bool blocks_cover(const std::vector<base::Cidr>& wide, const std::vector<base::Cidr>& narrow) {
  const auto in_wide = [&](const base::Cidr& block) {
    return std::any_of(wide.begin(), wide.end(), [&](const base::Cidr& w) { return w.contains(block); });
  };
  return wide.empty() || (!narrow.empty() && std::all_of(narrow.begin(), narrow.end(), in_wide));
}

// Returns true if each condition of `wide` is implied by a condition of `narrow`.
template <class SameName>
bool names_cover(const std::vector<policy::NamedText>& wide, const std::vector<policy::NamedText>& narrow,
                 SameName same_name) {
  return std::all_of(wide.begin(), wide.end(), [&](const policy::NamedText& w) {
    return std::any_of(narrow.begin(), narrow.end(), [&](const policy::NamedText& n) {
      return same_name(w.name, n.name) && w.text.covers(n.text);
    });
  });
}

bool heads_cover(const policy::Match& wide, const policy::Match& narrow) {
  return names_cover(wide.headers, narrow.headers, http::equal_ignoring_case) &&
         names_cover(wide.query, narrow.query, std::equal_to<>());
}

// Compares the words of body_contains only if both matches have the same max_body, because weir searches only
// the first max_body bytes for the words.
bool bodies_cover(const policy::Match& wide, const policy::Match& narrow) {
  return names_cover(wide.json, narrow.json, std::equal_to<>()) &&
         (wide.body_words.empty() ||
          (wide.max_body == narrow.max_body && any_covers(wide.body_words, narrow.body_words)));
}

}  // namespace

bool plainly_disjoint(const policy::Match& a, const policy::Match& b) {
  if (a.host && b.host && *a.host != *b.host) return true;
  const auto in_b = [&](const std::string& method) {
    return std::find(b.methods.begin(), b.methods.end(), method) != b.methods.end();
  };
  if (!a.methods.empty() && !b.methods.empty() && std::none_of(a.methods.begin(), a.methods.end(), in_b))
    return true;
  return paths_disjoint(a, b);
}

bool plainly_covers(const policy::Match& wide, const policy::Match& narrow) {
  if (wide.path && (!narrow.path || !wide.path->covers(*narrow.path))) return false;
  if (wide.host && wide.host != narrow.host) return false;
  if (wide.hours && (!narrow.hours || wide.hours->describe() != narrow.hours->describe())) return false;
  if (wide.negated && (!narrow.negated || !plainly_covers(*narrow.negated, *wide.negated))) return false;
  return any_covers(wide.methods, narrow.methods) && any_covers(wide.tiers, narrow.tiers) &&
         any_covers(wide.countries, narrow.countries) && any_covers(wide.cities, narrow.cities) &&
         any_covers(wide.regions, narrow.regions) && any_covers(wide.asns, narrow.asns) &&
         blocks_cover(wide.ip, narrow.ip) && heads_cover(wide, narrow) && bodies_cover(wide, narrow);
}

}  // namespace weir::config
