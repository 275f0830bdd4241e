#include "config/read/table_reader.hpp"

#include "config/errors/fitting_value.hpp"
#include "config/errors/migration_advice.hpp"
#include "config/errors/other_spellings.hpp"
#include "config/read/value_kind.hpp"

#include "weir/base/units.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>

namespace weir::config {

namespace {

constexpr std::int64_t kMostUnits = 1'000'000'000;

// Returns true if the value contains a string with an unset environment variable. read_toml() has reported
// that mistake.
bool unreadable(const Node& node) {
  if (std::holds_alternative<Unreadable>(node.value)) return true;
  const auto* array = node.array();
  return array != nullptr && std::any_of(array->begin(), array->end(), unreadable);
}

std::vector<std::string_view> names_of(const TableSpec& spec) {
  std::vector<std::string_view> names;
  for (const auto& key : spec.keys) names.push_back(key.name);
  return names;
}

std::string joined(const std::string& path, std::string_view key) {
  if (key.empty()) return path;
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

}  // namespace

TableReader::TableReader(const Node* node, int line, std::string path, const TableSpec& spec,
                         SourceFile source_file)
    : line_(line), path_(std::move(path)), spec_(&spec), source_file_(source_file), node_(node) {
  const auto* table = node == nullptr ? nullptr : node->table();
  if (table == nullptr) return;
  for (const auto& entry : table->entries) check_entry(entry);
  flawed_ = entries_.size() != table->entries.size();
  for (const auto& key : spec.keys) {
    if (!key.required || mentions(key.name)) continue;
    const auto expected = expectation(key);
    missing(key.name, expected == key.about ? expected : expected + ": " + std::string(key.about));
  }
}

bool TableReader::mentions(std::string_view key) const {
  const auto* table = node_ == nullptr ? nullptr : node_->table();
  return table != nullptr && std::any_of(table->entries.begin(), table->entries.end(),
                                         [&](const Node& entry) { return entry.key == key; });
}

bool TableReader::misspells(std::string_view key) const {
  const auto* table = node_ == nullptr ? nullptr : node_->table();
  const auto names = names_of(*spec_);
  return table != nullptr &&
         std::any_of(table->entries.begin(), table->entries.end(), [&](const Node& entry) {
           return spec_->find(entry.key) == nullptr && nearest(entry.key, names) == key;
         });
}

void TableReader::check_entry(const Node& entry) {
  const auto* spec = spec_->find(entry.key);
  const auto path = joined(path_, entry.key);
  if (spec == nullptr) {
    const auto names = names_of(*spec_);
    auto advice = advice_for_key(*spec_, entry, *node_->table());
    if (advice.empty() && path_.empty()) advice = header_for(entry.key, entry);
    return mistake_at(entry.line, path,
                      "unknown key" + (advice.empty() ? suggestion(entry.key, names) : "; " + advice));
  }
  if (!spec->instead.empty())
    return mistake_at(entry.line, path, "unknown key here; write " + std::string(spec->instead));
  if (unreadable(entry)) return;
  if (well_typed(entry, *spec)) entries_.push_back(&entry);
}

// Returns the end of a message about a header with the wrong number of brackets: ": write [[rule]] …" if the
// file has [rule] instead, or the reverse. Returns an empty text for any other entry.
std::string TableReader::header_instead(const Node& entry, const KeySpec& spec) const {
  const bool of_root = path_.empty();
  const bool tables = entry.array() != nullptr && of_kind(entry, Kind::Subtables) && !entry.array()->empty();
  if (of_root && spec.kind == Kind::Subtables && entry.table() != nullptr)
    return ": write [[" + entry.key + "]] instead of [" + entry.key + "]";
  if (of_root && spec.kind == Kind::Subtable && tables)
    return ": write [" + entry.key + "] instead of [[" + entry.key + "]]";
  return {};
}

bool TableReader::well_typed(const Node& entry, const KeySpec& spec) const {
  const auto path = joined(path_, entry.key);
  if (!of_kind(entry, spec.kind)) {
    const auto* misfit = misfit_in(entry, spec.kind);
    const auto line = line_for_value(spec, entry, *node_->table());
    mistake_at(misfit != nullptr ? misfit->line : entry.line, path,
               finding(entry, spec.kind) + "; expected " + expectation(spec) + header_instead(entry, spec) +
                   (line.empty() ? "" : ": write " + line));
    return false;
  }
  if (spec.kind == Kind::Whole) {
    const auto value = std::get<std::int64_t>(entry.value);
    if (value < spec.least || value > spec.most) {
      mistake_at(entry.line, path, "found " + std::to_string(value) + "; expected " + expectation(spec));
      return false;
    }
  }
  return spec.kind != Kind::Choice || in_choices(*entry.text(), entry, spec);
}

bool TableReader::in_choices(const std::string& word, const Node& entry, const KeySpec& spec) const {
  std::vector<std::string_view> words;
  for (const auto& choice : spec.choices) {
    if (choice.word == word) return true;
    words.push_back(choice.word);
  }
  const auto ours = fitting_text(spec, word);
  mistake_at(entry.line, joined(path_, entry.key),
             "found " + in_quotes(word) +
                 (ours.empty() ? suggestion(word, words) : "; write " + entry.key + " = " + ours));
  return false;
}

const Node* TableReader::find(std::string_view key) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Node* n) { return n->key == key; });
  return found == entries_.end() ? nullptr : *found;
}

const KeySpec& TableReader::spec_of(std::string_view key,
                                    [[maybe_unused]] std::initializer_list<Kind> kinds) const {
  const auto* spec = spec_->find(key);
  assert(spec != nullptr && std::find(kinds.begin(), kinds.end(), spec->kind) != kinds.end());
  return *spec;
}

// Parses the setting's string or its default. Returns nullopt if both are absent, or if the string does not
// parse. `nearest`: null, or a function that returns the correct spelling of a string that does not parse.
template <class T, class Parse>
std::optional<T> TableReader::parsed(std::string_view key, Parse parse, Nearest nearest) const {
  const auto* entry = find(key);
  const std::string text(entry != nullptr ? std::string_view(*entry->text()) : spec_->find(key)->fallback);
  if (text.empty() && entry == nullptr) return std::nullopt;
  auto value = parse(text);
  if (value) return std::move(*value);
  const auto& said = value.error().message;
  const auto near = nearest != nullptr ? nearest(text) : std::nullopt;
  mistake(key, near ? said.substr(0, said.rfind("; write")) + "; write " + std::string(key) + " = " +
                          in_quotes(*near)
                    : said);
  return std::nullopt;
}

bool TableReader::boolean(std::string_view key) const {
  const auto& spec = spec_of(key, {Kind::Bool});
  const auto* entry = find(key);
  return entry != nullptr ? std::get<bool>(entry->value) : spec.fallback == "true";
}

std::string TableReader::text(std::string_view key) const {
  const auto& spec = spec_of(key, {Kind::Text, Kind::Choice});
  const auto* entry = find(key);
  return entry != nullptr ? *entry->text() : std::string(spec.fallback);
}

std::int64_t TableReader::whole(std::string_view key) const {
  const auto& spec = spec_of(key, {Kind::Whole});
  if (const auto* entry = find(key)) return std::get<std::int64_t>(entry->value);
  std::int64_t value = spec.least;
  std::from_chars(spec.fallback.data(), spec.fallback.data() + spec.fallback.size(), value);
  return value;
}

std::optional<std::uint64_t> TableReader::size(std::string_view key) const {
  (void)spec_of(key, {Kind::Size});
  const auto* entry = find(key);
  if (entry == nullptr || entry->text() != nullptr)
    return parsed<std::uint64_t>(
        key, [](const std::string& text) { return base::parse_size(text); }, nearest_size);
  const auto bytes = std::get<std::int64_t>(entry->value);
  if (bytes >= 0) return static_cast<std::uint64_t>(bytes);
  mistake(key, "found " + std::to_string(bytes) + "; expected a size such as \"64KiB\"");
  return std::nullopt;
}

base::Duration TableReader::duration(std::string_view key) const {
  (void)spec_of(key, {Kind::Duration});
  return parsed<base::Duration>(
             key, [](const std::string& text) { return base::parse_duration(text); }, nearest_duration)
      .value_or(base::Duration{0});
}

base::Duration TableReader::deadline(std::string_view key) const {
  (void)spec_of(key, {Kind::Duration});
  const auto value = parsed<base::Duration>(
      key, [](const std::string& text) { return base::parse_duration(text); }, nearest_duration);
  if (value && value->count() == 0)
    mistake(key, "found " + in_quotes(*find(key)->text()) + "; expected a duration above zero");
  return value.value_or(base::Duration{0});
}

std::optional<limit::Rate> TableReader::rate(std::string_view key) const {
  const auto& spec = spec_of(key, {Kind::Rate, Kind::Limit});
  if (const auto* entry = find(key); entry != nullptr && entry->text() == nullptr) {
    const auto line = line_for_value(spec, *entry, *node_->table());
    mistake(key, finding(*entry, spec.kind) + "; expected " + expectation(spec) +
                     (line.empty() ? "" : ": write " + line));
    return std::nullopt;
  }
  return parsed<limit::Rate>(
      key, [](const std::string& text) { return limit::parse_rate(text); }, nearest_rate);
}

std::optional<std::uint64_t> TableReader::count(std::string_view key) const {
  (void)spec_of(key, {Kind::Limit});
  const auto* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  const auto* number = std::get_if<std::int64_t>(&entry->value);
  if (number != nullptr && *number >= 1 && *number <= kMostUnits) return static_cast<std::uint64_t>(*number);
  mistake(key, "found " + (number != nullptr ? std::to_string(*number) : std::string(type_name(*entry))) +
                   "; expected a whole number from 1 to " + std::to_string(kMostUnits));
  return std::nullopt;
}

std::optional<base::Endpoint> TableReader::address(std::string_view key) const {
  (void)spec_of(key, {Kind::Address});
  return parsed<base::Endpoint>(key, [](const std::string& text) { return base::parse_endpoint(text); });
}

std::vector<std::string> TableReader::texts(std::string_view key) const {
  auto rest = spec_of(key, {Kind::Texts, Kind::OneOrMore}).fallback;
  std::vector<std::string> result;
  if (const auto* entry = find(key)) {
    if (entry->text() != nullptr) return {*entry->text()};
    for (const auto& element : *entry->array()) result.push_back(*element.text());
    return result;
  }
  while (!rest.empty()) {  // splits the default into its words
    const auto end = std::min(rest.find(' '), rest.size());
    result.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return result;
}

TableReader TableReader::table(std::string_view key, const TableSpec& spec) const {
  (void)spec_of(key, {Kind::Subtable});
  const auto* entry = find(key);
  return {entry, entry == nullptr ? line_ : entry->line, joined(path_, key), spec, source_file_};
}

std::vector<TableReader> TableReader::tables(std::string_view key, const TableSpec& spec) const {
  (void)spec_of(key, {Kind::Subtables, Kind::OneOrMoreTables});
  std::vector<TableReader> result;
  const auto* entry = find(key);
  if (entry == nullptr) return result;
  if (entry->table() != nullptr) {
    result.emplace_back(entry, entry->line, joined(path_, key), spec, source_file_);
    return result;
  }
  for (const auto& element : *entry->array()) {
    std::string_view name;
    for (const auto& inner : element.table()->entries)
      if (inner.key == "name" && inner.text() != nullptr) name = *inner.text();
    result.emplace_back(&element, element.line, joined(path_, key) + element_label(name, result.size()), spec,
                        source_file_);
  }
  return result;
}

const std::vector<Node>& TableReader::named(std::string_view key) const {
  static const std::vector<Node> kNone;
  (void)spec_of(key, {Kind::Named});
  const auto* entry = find(key);
  return entry == nullptr ? kNone : entry->table()->entries;
}

std::size_t TableReader::choice_index(std::string_view key) const {
  const auto& spec = spec_of(key, {Kind::Choice});
  const auto word = text(key);
  const auto found = std::find_if(spec.choices.begin(), spec.choices.end(),
                                  [&](const Choice& choice) { return choice.word == word; });
  return found == spec.choices.end() ? 0 : static_cast<std::size_t>(found - spec.choices.begin());
}

void TableReader::mistake(std::string_view key, std::string_view what) const {
  const auto* entry = key.empty() ? nullptr : find(key);
  mistake_at(entry == nullptr ? line_ : entry->line, joined(path_, key), what);
}

void TableReader::mistake_in(std::string_view key, std::size_t position, std::string_view what) const {
  const auto* entry = find(key);
  const auto* array = entry == nullptr ? nullptr : entry->array();
  if (array == nullptr || position >= array->size()) return mistake(key, what);
  mistake_at((*array)[position].line, joined(path_, key), what);
}

void TableReader::mistake_at(int line, std::string_view path, std::string_view what) const {
  source_file_.mistakes->add(*source_file_.file, line, path, what);
}

void TableReader::missing(std::string_view key, std::string_view expected) const {
  mistake(key, "missing; expected " + std::string(expected));
}

}  // namespace weir::config
