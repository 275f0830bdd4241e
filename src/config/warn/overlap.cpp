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

// Returns the match's path as the configuration writes it. Returns an empty text if the match has no path.
// Also returns an empty text for a regular expression, because this code does not analyse it.
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

// Returns true if no text is in both lists. An empty list allows every text.
bool lists_disjoint(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto in_b = [&](const std::string& text) { return std::find(b.begin(), b.end(), text) != b.end(); };
  return !a.empty() && !b.empty() && std::none_of(a.begin(), a.end(), in_b);
}

bool hosts_disjoint(const std::vector<policy::HostMatch>& a, const std::vector<policy::HostMatch>& b) {
  const auto apart_from_b = [&](const policy::HostMatch& one) {
    return std::all_of(b.begin(), b.end(),
                       [&](const policy::HostMatch& other) { return one.is_disjoint(other); });
  };
  return !a.empty() && !b.empty() && std::all_of(a.begin(), a.end(), apart_from_b);
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

// Returns true if `narrow` has, for each condition of `wide`, a condition on the same name (for example, the
// same header field) that is equal or stricter.
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
         names_cover(wide.query, narrow.query, std::equal_to<>()) &&
         names_cover(wide.claims, narrow.claims, std::equal_to<>()) &&
         names_cover(wide.descriptor, narrow.descriptor, std::equal_to<>());
}

// Returns true if each body that meets the conditions of `narrow` meets those of `wide`. If `wide` has
// body_contains, `narrow` must have the same max_body, because weir searches only the first max_body bytes
// for the words.
bool bodies_cover(const policy::Match& wide, const policy::Match& narrow) {
  return names_cover(wide.json, narrow.json, std::equal_to<>()) &&
         (wide.body_words.empty() ||
          (wide.max_body == narrow.max_body && any_covers(wide.body_words, narrow.body_words)));
}

}  // namespace

bool plainly_disjoint(const policy::Match& a, const policy::Match& b) {
  if (hosts_disjoint(a.hosts, b.hosts) || (a.https && b.https && *a.https != *b.https)) return true;
  if (lists_disjoint(a.listeners, b.listeners) || lists_disjoint(a.routes, b.routes)) return true;
  if (lists_disjoint(a.domains, b.domains)) return true;
  return lists_disjoint(a.methods, b.methods) || paths_disjoint(a, b);
}

bool plainly_disjoint(const policy::Route& route, const policy::Rule& rule) {
  const auto& named = rule.match.routes;
  if (!named.empty() && std::find(named.begin(), named.end(), route.name) == named.end()) return true;
  return plainly_disjoint(route.match, rule.match);
}

bool answers_questions(const Settings& settings) {
  return std::any_of(
      settings.listeners.begin(), settings.listeners.end(),
      [](const net::ListenerSettings& listener) { return listener.serves != net::Serves::Proxy; });
}

bool is_for_questions(const policy::Rule& rule) {
  return !rule.descriptor_keys.empty() || !rule.match.domains.empty();
}

bool plainly_covers(const policy::Match& wide, const policy::Match& narrow) {
  if (wide.path && (!narrow.path || !wide.path->covers(*narrow.path))) return false;
  if (!hosts_cover(wide, narrow) || (wide.https && wide.https != narrow.https)) return false;
  if (!any_covers(wide.listeners, narrow.listeners) || !any_covers(wide.routes, narrow.routes)) return false;
  if (!any_covers(wide.domains, narrow.domains)) return false;
  if (wide.hours && (!narrow.hours || wide.hours->describe() != narrow.hours->describe())) return false;
  if (wide.negated && (!narrow.negated || !plainly_covers(*narrow.negated, *wide.negated))) return false;
  return any_covers(wide.methods, narrow.methods) && any_covers(wide.tiers, narrow.tiers) &&
         any_covers(wide.countries, narrow.countries) && any_covers(wide.cities, narrow.cities) &&
         any_covers(wide.regions, narrow.regions) && any_covers(wide.asns, narrow.asns) &&
         blocks_cover(wide.ip, narrow.ip) && heads_cover(wide, narrow) && bodies_cover(wide, narrow);
}

}  // namespace weir::config
