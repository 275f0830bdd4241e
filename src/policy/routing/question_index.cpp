#include "weir/policy/routing/question_index.hpp"

#include <algorithm>
#include <utility>

namespace weir::policy {

namespace {

// Returns true if the rule applies only to questions that name a domain.
bool needs_domain(const Rule& rule) noexcept {
  const auto& domains = rule.match.domains;
  return !domains.empty() &&
         std::none_of(domains.begin(), domains.end(), [](const auto& name) { return name.empty(); });
}

struct KeyAndValue {
  std::string key, value;
};

// Returns a list of keys. The rule applies only to descriptors that have at least one of these keys. If the
// rule requires one particular value of a key, the list has this value, too. If the rule may apply to
// descriptors without any key, the list is one empty key.
std::vector<KeyAndValue> needed_keys(const Rule& rule) {
  const auto& conditions = rule.match.descriptor;
  for (const auto& condition : conditions)
    if (const auto* text = condition.text.exact()) return {{condition.name, *text}};
  if (!conditions.empty()) return {{conditions.front().name, ""}};
  const auto is_descriptor = [](const AttributeRef& one) { return one.kind == Attribute::Descriptor; };
  const auto needs_descriptor = [&](const KeyPart& part) {
    return std::all_of(part.begin(), part.end(), is_descriptor);
  };
  const auto part = std::find_if(rule.key.begin(), rule.key.end(), needs_descriptor);
  // With any other on_missing than Skip, the rule also applies to descriptors without the key: it refuses
  // the question, or uses the client's address in place of the value.
  if (rule.on_missing != OnMissing::Skip || part == rule.key.end()) return {{"", ""}};
  std::vector<KeyAndValue> keys;
  for (const auto& attribute : *part) keys.push_back({attribute.name, ""});
  return keys;
}

}  // namespace

bool QuestionIndex::is_for_questions(const Rule& rule) noexcept {
  return !rule.descriptor_keys.empty() || needs_domain(rule);
}

std::vector<QuestionIndex::Path> QuestionIndex::paths_of(const Rule& rule) {
  const auto domains = needs_domain(rule) ? rule.match.domains : std::vector<std::string>{""};
  std::vector<Path> paths;
  for (const auto& [key, value] : needed_keys(rule))
    for (const auto& domain : domains) paths.push_back({domain, key, value});
  return paths;
}

MatchIndex& QuestionIndex::at(const Path& path) {
  auto& of_domain = by_domain_[path.domain];
  if (path.key.empty()) return of_domain.without_key;
  auto& of_key = of_domain.by_key[path.key];
  return path.value.empty() ? of_key.any_value : of_key.by_value[path.value];
}

QuestionIndex::QuestionIndex(std::span<const Rule> rules) {
  std::vector<const Match*> matches;
  std::map<Path, std::vector<Position>> positions;
  for (const Rule& rule : rules) {
    const auto position = static_cast<Position>(matches.size());
    matches.push_back(&rule.match);
    if (!is_for_questions(rule)) continue;
    for (auto& path : paths_of(rule)) positions[std::move(path)].push_back(position);
  }
  for (auto& [path, found] : positions) at(path) = MatchIndex(matches, std::move(found));
}

void QuestionIndex::append(const OfDomain& rules, const Request& request, std::vector<Position>& positions) {
  rules.without_key.append(request, positions);
  for (const auto& descriptor : request.descriptors)
    for (const auto& entry : descriptor.entries) {
      const auto of_key = rules.by_key.find(entry.key);
      // Rules see only the first value of a key, and an empty value counts as missing.
      if (of_key == rules.by_key.end() || entry.value.empty() ||
          descriptor.value_of(entry.key).data() != entry.value.data())
        continue;
      of_key->second.any_value.append(request, positions);
      const auto of_value = of_key->second.by_value.find(entry.value);
      if (of_value != of_key->second.by_value.end()) of_value->second.append(request, positions);
    }
}

void QuestionIndex::append(const Request& request, std::vector<Position>& positions) const {
  const auto append_domain = [&](std::string_view name) {
    const auto found = by_domain_.find(name);
    if (found != by_domain_.end()) append(found->second, request, positions);
  };
  append_domain("");
  if (!request.domain.empty()) append_domain(request.domain);
}

}  // namespace weir::policy
