#include "policy/body/form_fields.hpp"

#include "policy/body/fold_case.hpp"
#include "policy/rules/pieces.hpp"

#include "weir/http/percent.hpp"

#include <algorithm>
#include <utility>

namespace weir::policy {

namespace {

using http::Plus;

// Returns the octet that stands for `c` in FormNames::Entry::pattern: '_' for a blank, '.' and '[', otherwise
// `c` itself. PHP reads blanks, dots and some '[' in a name as '_'. So names that PHP may confuse have equal
// patterns.
unsigned char pattern_octet(char c) noexcept {
  return static_cast<unsigned char>(c == ' ' || c == '.' || c == '[' ? '_' : c);
}

// Returns true if some server ends the name of a field before this octet. For example, Rack ends it before
// ']'.
bool may_end_name(char c) noexcept {
  return static_cast<unsigned char>(c) <= ' ' || c == '[' || c == ']';
}

// Returns how many octets at the beginning of a name some servers ignore. JavaScript's URLSearchParams drops
// a '?' before the first name, and other servers drop a byte order mark there.
std::size_t ignored_octets(std::string_view name) noexcept {
  std::size_t ignored = 0;
  while (ignored < name.size()) {
    if (name.substr(ignored).starts_with(kByteOrderMark))
      ignored += kByteOrderMark.size();
    else if (may_end_name(name[ignored]) || name[ignored] == '?')
      ++ignored;
    else
      break;
  }
  return ignored;
}

// Returns true if the text has an escape "%u0041", which only .NET Framework decodes.
bool has_unicode_escape(std::string_view raw) noexcept {
  const auto is_hex = [](char c) {
    const char l = static_cast<char>(c | 0x20);
    return (c >= '0' && c <= '9') || (l >= 'a' && l <= 'f');
  };
  constexpr std::size_t kDigits = 4;
  for (auto at = raw.find("%u"); at != std::string_view::npos; at = raw.find("%u", at + 1)) {
    const auto digits = raw.substr(at + 2, kDigits);
    if (digits.size() == kDigits && std::all_of(digits.begin(), digits.end(), is_hex)) return true;
  }
  return false;
}

constexpr std::string_view kBrackets = "[]";

// Returns the name with one '[' between its parts: "user[email" for "user[email]". Rack accepts any number of
// brackets of either kind between two parts, and around a name.
std::string parts_of(std::string_view name) {
  std::string parts;
  while (!name.empty()) {
    name.remove_prefix(std::min(name.find_first_not_of(kBrackets), name.size()));
    const auto end = std::min(name.find_first_of(kBrackets), name.size());
    if (!parts.empty() && end != 0) parts += '[';
    parts += name.substr(0, end);
    name.remove_prefix(end);
  }
  return parts;
}

}  // namespace

void FormNames::add(std::string_view name) {
  if (numbers_.contains(name)) return;
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '+', ' ');
  fold_case(plain);
  auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& one) { return one.name == plain; });
  if (entry == entries_.end()) {
    std::string pattern;
    for (const char c : plain) pattern += static_cast<char>(pattern_octet(c));
    const auto place =
        std::upper_bound(entries_.begin(), entries_.end(), pattern,
                         [](const std::string& one, const Entry& other) { return one < other.pattern; });
    if (plain.find_first_of(kBrackets) != std::string::npos)
      bracketed_.emplace(parts_of(plain), Bracketed{plain, entries_.size()});
    entry = entries_.insert(place, {std::move(pattern), std::move(plain), entries_.size()});
  }
  numbers_.emplace(name, entry->value);
}

std::optional<std::size_t> FormNames::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found != numbers_.end() ? std::optional(found->second) : std::nullopt;
}

class FormNameSearch {
 public:
  FormNameSearch(const FormNames& names, std::vector<FormValue>& values)
      : entries_(names.entries_), bracketed_(names.bracketed_), values_(values) {}

  // Reads the part of the form between two '&'.
  void read(std::string_view piece) {
    const bool divided = piece.find(';') != std::string_view::npos;
    while (!piece.empty()) {
      const auto pair = name_value(take_piece(piece, ';'));
      if (has_unicode_escape(pair.name)) respell_all();
      name_.clear();
      http::append_decoded(name_, pair.name, Plus::Blank);
      fold_case(name_);
      if (!bracketed_.empty() && name_.find_first_of(kBrackets) != std::string::npos) search_bracketed();
      const auto ignored = ignored_octets(name_);
      search(0, pair.value, divided);
      if (ignored != 0) search(ignored, pair.value, divided);
    }
  }

 private:
  using Entry = FormNames::Entry;

  // Skips the first `start` octets of the current name. Stores `value`, or the fault Respelled, in each field
  // for which some server may take the rest of the name. Each octet narrows the range of the sorted entries,
  // so the number of entries hardly matters. `divided`: the piece of the form contains a ';'.
  void search(std::size_t start, std::string_view value, bool divided) {
    auto first = entries_.begin();
    auto last = entries_.end();
    for (std::size_t at = start; first != last; ++at) {
      const auto depth = at - start;
      const bool ends = at == name_.size() || may_end_name(name_[at]);
      const auto read = std::string_view(name_).substr(start, depth);
      for (; first != last && first->pattern.size() == depth; ++first)
        if (ends && (at == name_.size() || name_[at] != ']' || has_same_brackets(first->name, read)))
          store(*first, value, !divided && first->name == name_);
      if (at == name_.size()) return;
      const auto octet = pattern_octet(name_[at]);
      const auto octet_of = [&](const Entry& entry) {
        return static_cast<unsigned char>(entry.pattern[depth]);
      };
      first = std::partition_point(first, last, [&](const Entry& entry) { return octet_of(entry) < octet; });
      last = std::partition_point(first, last, [&](const Entry& entry) { return octet_of(entry) == octet; });
    }
  }
  // Marks a field with brackets in its name as Respelled if Rack may read the current name as that field.
  void search_bracketed() {
    const auto [first, last] = bracketed_.equal_range(parts_of(name_));
    for (auto found = first; found != last; ++found)
      if (found->second.name != name_) values_[found->second.value].fault = BodyFault::Respelled;
  }
  // Returns true if each '[' in `read` is also a '[' in the field's name. `read`: a name in the form, up to a
  // ']'. Without the ']', PHP would read a '[' as '_': "user[name" as "user_name".
  static bool has_same_brackets(std::string_view field, std::string_view read) noexcept {
    return std::equal(read.begin(), read.end(), field.begin(), field.end(),
                      [](char one, char other) { return one != '[' || other == '['; });
  }
  // Marks all fields as Respelled, because a name in the form may mean any of them.
  void respell_all() noexcept {
    for (auto& value : values_) value.fault = BodyFault::Respelled;
  }
  void store(const Entry& entry, std::string_view raw, bool exact) {
    auto& value = values_[entry.value];
    if (!exact || has_unicode_escape(raw) || value.fault == BodyFault::Respelled) {
      value.fault = BodyFault::Respelled;
      return;
    }
    if (value.found) value.fault = BodyFault::Repeated;
    if (!std::exchange(value.found, true))
      value.text = http::percent_decoded(raw, scratch_, Plus::Blank).substr(0, kLongestBodyValue);
  }

  const std::vector<Entry>& entries_;
  const FormNames::BracketedNames& bracketed_;
  std::vector<FormValue>& values_;
  std::string name_;     // the name of the current field, decoded and without capitals
  std::string scratch_;  // the decoded value
};

void find_fields(const FormNames& names, std::string_view form, std::vector<FormValue>& values) {
  values.assign(names.size(), {});
  FormNameSearch search(names, values);
  while (!form.empty()) search.read(take_piece(form, '&'));
}

bool has_field(std::string_view form, std::string_view name) {
  if (form.empty()) return false;
  FormNames names;
  names.add(name);
  std::vector<FormValue> values;
  find_fields(names, form, values);
  return values.front().found || values.front().fault != BodyFault::None;
}

}  // namespace weir::policy
