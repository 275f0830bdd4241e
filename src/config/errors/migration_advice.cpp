#include "config/errors/migration_advice.hpp"

#include "config/errors/fitting_value.hpp"
#include "config/errors/foreign_settings.hpp"
#include "config/errors/other_spellings.hpp"

#include "weir/config/config_errors.hpp"
#include "weir/limit/rate.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace weir::config {

namespace {

// Returns `line`, in which the value of `entry` replaces "{}". If `line` assigns "{}" to a setting, converts
// the value to the type of that setting. `find`: returns the setting to which a path of keys leads.
template <class Find>
std::string filled(std::string_view line, const Node& entry, Find find) {
  std::string text(line);
  const auto gap = text.find("{}");
  if (gap == std::string::npos) return text;
  const auto* spec = find(keys_before(line, gap));
  auto value = spec != nullptr ? fitting_value(*spec, entry) : as_toml(entry);
  if (value.empty() && spec != nullptr) value = example_value(*spec);
  if (value.empty()) value = as_toml(entry);
  if (value.empty()) value = "…";
  const bool in_list = gap > 0 && text[gap - 1] == '[' && value.starts_with('[');
  text.replace(gap, 2, in_list ? value.substr(1, value.size() - 2) : value);
  return text;
}

// Settings of other proxies. kCounts: names for the number of requests in a rate. kPeriods: names for the
// period of the rate.
constexpr std::array<std::string_view, 8> kCounts{
    "rate", "average", "requests", "count", "max_requests", "quota", "requests_per_unit", "max_tokens"};
constexpr std::array<std::string_view, 9> kPeriods{
    "period", "window", "window_size", "per", "interval", "time_window", "unit", "fill_interval", "duration"};
// Settings of other proxies whose name is the period of a rate, and whose value is the number of requests:
// `minute = 100`.
constexpr std::array<std::string_view, 5> kUnits{"second", "minute", "hour", "day", "month"};

// Returns true for a list whose first element is a table, such as [[cors]].
bool begins_with_a_table(const Node& entry) {
  const auto* array = entry.array();
  return array != nullptr && !array->empty() && array->front().table() != nullptr;
}

template <std::size_t N>
bool is_any(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns advice for a table that sets the number and the period of a rate by separate settings, such as:
// write limit = "100/min"
std::string limit_advice(const Table& table) {
  std::string count, period;
  for (const auto& entry : table.entries) {
    if (is_any(kUnits, entry.key))
      return "write limit = " + in_quotes(as_plain_text(entry) + "/" + entry.key);
    if (is_any(kPeriods, entry.key)) period = as_plain_text(entry);
    if (is_any(kCounts, entry.key) || (entry.key == "limit" && count.empty())) count = as_plain_text(entry);
    if (entry.key == "limit" && limit::parse_rate(as_plain_text(entry)))
      return "leave it out: limit = " + in_quotes(as_plain_text(entry)) +
             " contains both the count and the period";
  }
  if (!period.empty() && period.find_first_not_of("0123456789") == std::string::npos) period += "s";
  const bool whole = count.find('/') != std::string::npos;
  auto rate = whole ? count : (count.empty() ? "10" : count) + "/" + (period.empty() ? "s" : period);
  if (const auto near = nearest_rate(rate)) rate = *near;
  return "write limit = " + in_quotes(limit::parse_rate(rate) ? rate : "10/s");
}

// Returns the line to write in a listener in place of `http2 = true` (permits HTTP/2) or `http2 = false`
// (forbids it). Returns an empty text if the listener already has the setting `protocols`.
std::string protocols_line(const Table& listener, bool wanted) {
  bool tls = false;
  for (const auto& entry : listener.entries) {
    if (entry.key == "protocols") return {};
    tls = tls || entry.key == "tls";
  }
  if (!wanted) return "protocols = [\"http/1.1\"]";
  return tls ? "protocols = [\"http/1.1\", \"h2\"]" : "protocols = [\"http/1.1\", \"h2c\"]";
}

// Returns the first string in `table` whose key is one of `names`, in quotes. If there is none, returns
// `otherwise` in quotes.
std::string text_of(const Table& table, std::initializer_list<std::string_view> names,
                    std::string_view otherwise) {
  for (const auto& entry : table.entries)
    if (std::find(names.begin(), names.end(), entry.key) != names.end() && entry.text() != nullptr)
      return in_quotes(*entry.text());
  return in_quotes(otherwise);
}

// Returns advice for a listener's `tls` table that has `cert` and `key` itself, not in the list
// `certificates`.
std::string certificate_advice(const Table& table) {
  return "write certificates = [{ cert = " +
         text_of(table, {"cert", "certificate", "cert_file", "crt"}, "edge.crt") +
         ", key = " + text_of(table, {"key", "private_key", "key_file"}, "edge.key") + " }]";
}

}  // namespace

std::string advice_for_key(const TableSpec& spec, const Node& entry, const Table& siblings) {
  const bool has_limit = &spec == &schema::kRule || &spec == &schema::kTier || &spec == &schema::kOverride;
  if (has_limit && (is_any(kCounts, entry.key) || is_any(kPeriods, entry.key) || is_any(kUnits, entry.key)))
    return limit_advice(siblings);
  constexpr std::array<std::string_view, 7> kCertificate{
      "cert", "key", "certificate", "private_key", "cert_file", "key_file", "crt"};
  if (&spec == &schema::kTls && is_any(kCertificate, entry.key)) return certificate_advice(siblings);
  const auto found = std::find_if(
      kForeignSettings.begin(), kForeignSettings.end(),
      [&](const ForeignSetting& setting) { return setting.where == &spec && setting.key == entry.key; });
  if (found == kForeignSettings.end()) return {};
  constexpr std::string_view kWrite = "write ";
  if (!found->advice.starts_with(kWrite)) return std::string(found->advice);
  return std::string(kWrite) + filled(found->advice.substr(kWrite.size()), entry,
                                      [&](const auto& path) { return find_key(spec, path); });
}

std::string line_for_value(const KeySpec& spec, const Node& entry, const Table& siblings) {
  const bool says_period = std::any_of(siblings.entries.begin(), siblings.entries.end(),
                                       [](const Node& other) { return is_any(kPeriods, other.key); });
  if (spec.kind == Kind::Limit && spec.name == "limit" && says_period)
    return limit_advice(siblings).substr(std::string_view("write ").size());
  if (const auto* wanted = std::get_if<bool>(&entry.value); wanted != nullptr && spec.name == "http2")
    return protocols_line(siblings, *wanted);
  const bool table = spec.kind == Kind::Subtable || spec.kind == Kind::Subtables ||
                     spec.kind == Kind::OneOrMoreTables || spec.kind == Kind::Named;
  if (!table) {
    const auto value = fitting_value(spec, entry);
    return value.empty() ? "" : std::string(spec.name) + " = " + value;
  }
  const auto found = std::find_if(kTables.begin(), kTables.end(),
                                  [&](const ForeignTable& one) { return one.key == spec.name; });
  if (found == kTables.end() || entry.table() != nullptr || begins_with_a_table(entry)) return {};
  return filled(found->line, entry, [&](const std::vector<std::string>& path) {
    return find_below(spec, std::span(path).subspan(1));
  });
}

std::string header_for(std::string_view name, const Node& entry) {
  if (!name.ends_with('s')) return {};
  const auto one = name.substr(0, name.size() - 1);
  const auto* spec = schema::kRoot.find(one);
  const bool tables = entry.array() != nullptr;
  if (spec == nullptr || (!tables && entry.table() == nullptr)) return {};
  const auto in_brackets = [](std::string_view word, bool twice) {
    const std::string inner(word);
    return twice ? "[[" + inner + "]]" : "[" + inner + "]";
  };
  return "write " + in_brackets(one, spec->kind == Kind::Subtables) + " instead of " +
         in_brackets(name, tables);
}

std::string_view word_for(std::string_view key, std::string_view word) {
  const auto found = std::find_if(kWords.begin(), kWords.end(), [&](const ForeignValue& one) {
    return one.key == key && one.theirs == word;
  });
  return found == kWords.end() ? std::string_view{} : found->ours;
}

}  // namespace weir::config
