// Reads the settings about request bodies: the words of a match, the cost at a JSON pointer, and the most
// bytes to read.
#include "config/read/settings_sections.hpp"

#include "weir/policy/body.hpp"

#include <algorithm>

namespace weir::config {

namespace {

// The largest allowed max_body. A body that a rule reads stays in memory until the whole body has arrived.
constexpr std::uint64_t kMostRead = 16U << 20;
constexpr std::size_t kLongestPointer = 128;

std::uint64_t read_max_body(const TableReader& table) {
  const auto size = table.size("max_body").value_or(kMostRead);
  if (size >= 1 && size <= kMostRead) return size;
  table.mistake("max_body", "found " + std::to_string(size) +
                                " bytes; expected 1 byte to 16MiB, because weir holds such bodies in memory");
  return kMostRead;
}

// Returns true for a JSON pointer (RFC 6901 §3) that can appear in a header without escapes.
bool is_pointer(std::string_view text) {
  if (!text.starts_with('/') || text.size() > kLongestPointer) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\\') return false;
    if (c == '~' && text.substr(i, 2) != "~0" && text.substr(i, 2) != "~1") return false;
  }
  return true;
}

}  // namespace

void read_body_words(const TableReader& table, policy::Match& match) {
  if (!table.has("body_contains")) {
    if (table.has("max_body"))
      table.missing("body_contains", "the texts that weir looks for in bodies of up to max_body");
    return;
  }
  const auto words = table.texts("body_contains");
  if (words.empty()) table.mistake("body_contains", "found none; expected texts such as \"wire transfer\"");
  match.max_body = read_max_body(table);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& word = words[i];
    if (word.empty())
      table.mistake_in("body_contains", i, "found \"\", which every body contains; expected a text");
    else if (word.size() > match.max_body)
      table.mistake_in("body_contains", i, "found " + in_quotes(word) + ", which is longer than max_body");
    match.body_words.push_back(policy::body_word(word));
  }
}

void read_cost_body(const TableReader& table, policy::Rule& rule) {
  rule.max_body = read_max_body(table);
}

void read_json_cost(const TableReader& table, policy::Rule& rule) {
  rule.cost_from.kind = policy::CostSource::Kind::Json;
  rule.cost_from.name = table.text("json");
  read_cost_body(table, rule);
  if (!is_pointer(rule.cost_from.name))
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
