#include "weir/policy/rule_finder.hpp"

#include <algorithm>
#include <array>

namespace weir::policy {

namespace {

// Returns the hosts that the rule may match. Returns one empty text if the rule may match every host, or has
// a pattern for hosts.
std::vector<std::string> exact_hosts(const Match& match) {
  const bool exact =
      !match.hosts.empty() && std::all_of(match.hosts.begin(), match.hosts.end(),
                                          [](const HostMatch& host) { return host.is_exact(); });
  if (!exact) return {""};
  std::vector<std::string> hosts;
  for (const auto& host : match.hosts) hosts.push_back(host.describe());
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

}  // namespace

RuleFinder::RuleFinder(std::span<const Rule> rules) {
  if (rules.size() <= kFew) return;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto& methods = rules[i].match.methods;
    for (const auto& host : exact_hosts(rules[i].match)) {
      if (methods.empty()) add(rules[i], static_cast<Position>(i), host, "");
      for (const auto& method : methods) add(rules[i], static_cast<Position>(i), host, method);
    }
  }
  for (auto& [host, methods] : by_host_)
    for (auto& [method, patterns] : methods)
      // The parent of a pattern is the longest other pattern that is a prefix of this pattern. In sorted
      // order, the parent is the pattern before this one, or an ancestor of that pattern.
      for (std::size_t i = 1; i < patterns.size(); ++i) {
        auto& parent = patterns[i].parent = i - 1;
        while (parent != kNone && !patterns[i].text.starts_with(patterns[parent].text))
          parent = patterns[parent].parent;
      }
}

void RuleFinder::add(const Rule& rule, Position position, const std::string& host, std::string_view method) {
  auto& patterns = by_host_[host][std::string(method)];
  const auto text = rule.match.path ? rule.match.path->literal_start() : std::string_view{};
  const auto before = [](const Pattern& pattern, std::string_view other) { return pattern.text < other; };
  auto at = std::lower_bound(patterns.begin(), patterns.end(), text, before);
  if (at == patterns.end() || at->text != text) at = patterns.insert(at, Pattern{.text = std::string(text)});
  at->rules.push_back(position);
}

// Calls `visit` with the rules of each pattern that is a prefix of `path`. Considers only patterns for the
// request's host and method.
template <class Visit>
void RuleFinder::for_each(const Request& request, std::string_view path, Visit visit) const {
  const auto before = [](std::string_view other, const Pattern& pattern) { return other < pattern.text; };
  const auto in_patterns = [&](const Patterns& patterns) {
    // The longest pattern that is a prefix of the path is the last pattern that sorts before the path, or an
    // ancestor of that pattern. All shorter prefixes of the path are ancestors of the longest one.
    const auto after = std::upper_bound(patterns.begin(), patterns.end(), path, before);
    if (after == patterns.begin()) return;
    auto at = static_cast<std::size_t>(after - patterns.begin()) - 1;
    while (at != kNone && !path.starts_with(patterns[at].text)) at = patterns[at].parent;
    for (; at != kNone; at = patterns[at].parent) visit(patterns[at].rules);
  };
  const auto in_methods = [&](const ByName<Patterns>& methods) {
    if (const auto every = methods.find(""); every != methods.end()) in_patterns(every->second);
    if (const auto same = methods.find(request.head->method); same != methods.end())
      in_patterns(same->second);
  };
  if (const auto every = by_host_.find(""); every != by_host_.end()) in_methods(every->second);
  if (request.host.empty()) return;
  if (const auto same = by_host_.find(request.host); same != by_host_.end()) in_methods(same->second);
}

RuleList RuleFinder::find(std::span<const Rule> rules, const Request& request,
                          std::vector<const Rule*>& room) const {
  const auto* interpretations = request.interpretations;
  if (by_host_.empty() || (interpretations != nullptr && interpretations->too_many)) return rules;
  room.clear();
  const auto add_path = [&](std::string_view path) {
    // The target of "OPTIONS *" is not a path, but the patterns "*" and "/*" match it.
    for_each(request, path == "*" ? "/" : path, [&](const std::vector<Position>& positions) {
      for (const auto position : positions) room.push_back(&rules[position]);
    });
  };
  add_path(request.path);
  if (interpretations != nullptr)
    for (const auto& other : interpretations->others) add_path(other);
  std::sort(room.begin(), room.end());  // the rules are in one array, so this is their configured order
  room.erase(std::unique(room.begin(), room.end()), room.end());
  return RuleList(std::span<const Rule* const>(room));
}

namespace {

bool is_present(const AttributeRef& attribute, Reach reach) noexcept {
  constexpr std::array always{Attribute::Ip, Attribute::Method, Attribute::Path};
  constexpr std::array usually{Attribute::Host, Attribute::Route, Attribute::Upstream};
  return std::find(always.begin(), always.end(), attribute.kind) != always.end() ||
         (reach == Reach::Usual &&
          std::find(usually.begin(), usually.end(), attribute.kind) != usually.end());
}

// Returns true if requests always have a value for each part of the rule's key, or if the rule uses the
// client's address in place of a missing part. With Reach::Usual, also returns true if the rule rejects
// requests without a value.
bool has_key(const Rule& rule, Reach reach) {
  if (rule.on_missing == OnMissing::Ip) return true;
  if (rule.on_missing == OnMissing::Reject && reach == Reach::Usual) return true;
  return std::all_of(rule.key.begin(), rule.key.end(), [reach](const KeyPart& part) {
    return std::any_of(part.begin(), part.end(),
                       [reach](const AttributeRef& attribute) { return is_present(attribute, reach); });
  });
}

// Returns true if the rule applies to every request that meets its conditions on host, method and path.
bool applies(const Rule& rule, Reach reach) {
  const auto& match = rule.match;
  const bool only_by_target = match.headers.empty() && match.query.empty() && match.tiers.empty() &&
                              match.claims.empty() && match.ip.empty() && match.countries.empty() &&
                              match.cities.empty() && match.regions.empty() && match.asns.empty() &&
                              !match.hours && match.body_words.empty() && match.json.empty() &&
                              !match.negated && !match.https && match.listeners.empty() &&
                              match.routes.empty() && match.domains.empty() && rule.descriptor_keys.empty();
  return only_by_target && has_key(rule, reach);
}

// Returns true if `other` matches every request that `rule` matches. REQUIRES: applies(other).
bool covers(const Rule& other, const Rule& rule) {
  const auto& wide = other.match;
  const auto& narrow = rule.match;
  if (!hosts_cover(wide, narrow)) return false;
  if (wide.path && !wide.path->holds_of_all() && !(narrow.path && wide.path->covers(*narrow.path)))
    return false;
  if (wide.methods.empty()) return true;
  const auto listed = [&](const std::string& method) {
    return std::find(wide.methods.begin(), wide.methods.end(), method) != wide.methods.end();
  };
  return !narrow.methods.empty() && std::all_of(narrow.methods.begin(), narrow.methods.end(), listed);
}

std::size_t charges_of(const Rule& rule) noexcept {
  return rule.elastic ? 2 : 1;
}

}  // namespace

const Rule* first_beyond(std::span<const Rule> rules, std::size_t most, Reach reach) {
  for (const Rule& rule : rules) {
    if (!applies(rule, reach)) continue;
    std::size_t charges = 0;
    for (const Rule* other = rules.data(); other <= &rule; ++other)
      if (applies(*other, reach) && covers(*other, rule)) charges += charges_of(*other);
    if (charges > most) return &rule;
  }
  return nullptr;
}

}  // namespace weir::policy
