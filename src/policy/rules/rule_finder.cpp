#include "weir/policy/rule_finder.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::policy {

RuleFinder::RuleFinder(std::span<const Rule> rules)
    : for_questions_(rules), returns_all_(rules.size() <= MatchIndex::kFew && for_questions_.empty()) {
  std::vector<const Match*> matches;
  std::vector<MatchIndex::Position> of_requests;
  for (const Rule& rule : rules) {
    if (!QuestionIndex::is_for_questions(rule))
      of_requests.push_back(static_cast<MatchIndex::Position>(matches.size()));
    matches.push_back(&rule.match);
  }
  for_requests_ = MatchIndex(matches, std::move(of_requests));
}

RuleList RuleFinder::find(std::span<const Rule> rules, const Request& request, Scratch& scratch) const {
  if (returns_all_) return rules;
  auto& positions = scratch.positions;
  positions.clear();
  for_requests_.append(request, positions);
  if (!request.domain.empty() || !request.descriptors.empty()) for_questions_.append(request, positions);
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  scratch.rules.clear();
  for (const auto position : positions) scratch.rules.push_back(&rules[position]);
  return RuleList(std::span<const Rule* const>(scratch.rules));
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
