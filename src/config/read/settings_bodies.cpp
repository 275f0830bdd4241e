// Reads the settings that look into request bodies: `body_contains` and `json` of a match, `json` of a cost,
// and `max_body`.
#include "config/read/settings_sections.hpp"

#include "weir/policy/body.hpp"

#include <algorithm>

namespace weir::config {

namespace {

// The largest value of max_body. It is bounded, because a body that a rule reads stays in memory until the
// whole body has arrived.
constexpr std::uint64_t kMostRead = 16U << 20;

std::uint64_t read_max_body(const TableReader& table) {
  const auto size = table.size("max_body").value_or(kMostRead);
  if (size >= 1 && size <= kMostRead) return size;
  table.mistake("max_body", "found " + std::to_string(size) +
                                " bytes; expected 1 byte to 16MiB, because weir holds such bodies in memory");
  return kMostRead;
}

void read_words(const TableReader& table, policy::Match& match) {
  if (!table.has("body_contains")) return;
  const auto words = table.texts("body_contains");
  if (words.empty()) table.mistake("body_contains", "found none; expected texts such as \"wire transfer\"");
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& word = words[i];
    if (word.empty())
      table.mistake_in("body_contains", i, "found \"\", which every body contains; expected a text");
    else if (word.size() > match.max_body)
      table.mistake_in("body_contains", i, "found " + in_quotes(word) + ", which is longer than max_body");
    match.body_words.push_back(policy::body_word(word));
  }
}

}  // namespace

void read_body_conditions(const TableReader& table, policy::Match& match) {
  if (!table.has("body_contains") && !table.has("json")) {
    if (table.has("max_body") && !table.mentions("json"))
      table.missing("body_contains", "the texts that weir looks for in bodies of up to max_body");
    return;
  }
  match.max_body = read_max_body(table);
  read_words(table, match);
  if (!table.has("json")) return;
  read_named(table, "json", NameKind::Pointer, match.json);
  if (table.named("json").empty())
    table.mistake("json", "found none; expected conditions such as { \"/model\" = \"~^gpt-4\" }");
}

void read_body_of_key(const TableReader& table, policy::Rule& rule) {
  if (policy::reads_body(rule.key))
    rule.max_body = std::max(rule.max_body, read_max_body(table));
  else if (table.has("max_body"))
    table.mistake("key",
                  "found max_body without json: or form: in the key; expected such a key, or max_body in the "
                  "table of match or cost");
}

void read_cost_body(const TableReader& table, policy::Rule& rule) {
  rule.max_body = read_max_body(table);
}

void read_json_cost(const TableReader& table, policy::Rule& rule) {
  rule.cost_from.kind = policy::CostSource::Kind::Json;
  rule.cost_from.name = table.text("json");
  read_cost_body(table, rule);
  if (!policy::is_json_pointer(rule.cost_from.name))
    table.mistake("json",
                  "found " + in_quotes(rule.cost_from.name) +
                      "; expected a JSON pointer (RFC 6901) such as \"/amount\" or \"/items/0/price\"");
}

std::uint64_t most_body(const policy::Rule& rule) {
  auto most = std::max(rule.max_body, rule.match.max_body);
  for (const auto& variant : rule.overrides) most = std::max(most, variant.match.max_body);
  return most;
}

}  // namespace weir::config
