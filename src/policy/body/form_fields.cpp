#include "policy/body/form_fields.hpp"

#include "policy/body/fold_case.hpp"
#include "policy/rules/pieces.hpp"

#include "weir/http/percent.hpp"

#include <algorithm>
#include <utility>

namespace weir::policy {

namespace {

using http::Plus;

// Returns the octet in patterns of names. PHP reads a blank, a '.' and some '[' in a name as '_'.
unsigned char pattern_octet(char c) noexcept {
  return static_cast<unsigned char>(c == ' ' || c == '.' || c == '[' ? '_' : c);
}

// Returns true if some server ends the name of a field before this octet.
bool may_end_name(char c) noexcept {
  return static_cast<unsigned char>(c) <= ' ' || c == '[';
}

// Returns how many octets at the beginning of a name some servers ignore.
std::size_t ignored_octets(std::string_view name) noexcept {
  const auto counts = [](char c) { return !may_end_name(c); };
  return static_cast<std::size_t>(std::find_if(name.begin(), name.end(), counts) - name.begin());
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
      : entries_(names.entries_), values_(values) {}

  // Reads what the form has between two '&'.
  void read(std::string_view piece) {
    const bool divided = piece.find(';') != std::string_view::npos;
    while (!piece.empty()) {
      const auto pair = name_value(take_piece(piece, ';'));
      name_.clear();
      http::append_decoded(name_, pair.name, Plus::Blank);
      fold_case(name_);
      const auto ignored = ignored_octets(name_);
      search(0, pair.value, divided);
      if (ignored != 0) search(ignored, pair.value, divided);
    }
  }

 private:
  using Entry = FormNames::Entry;

  // Finds the entries whose field some server may see in the present name, from the octet number `start`.
  // Narrows the sorted entries octet by octet, so the number of entries hardly matters.
  void search(std::size_t start, std::string_view value, bool divided) {
    auto first = entries_.begin();
    auto last = entries_.end();
    for (std::size_t at = start; first != last; ++at) {
      const auto depth = at - start;
      const bool ends = at == name_.size() || may_end_name(name_[at]) || (start != 0 && name_[at] == ']');
      for (; first != last && first->pattern.size() == depth; ++first)
        if (ends) store(*first, value, !divided && first->name == name_);
      if (at == name_.size()) return;
      const auto octet = pattern_octet(name_[at]);
      const auto octet_of = [&](const Entry& entry) {
        return static_cast<unsigned char>(entry.pattern[depth]);
      };
      first = std::partition_point(first, last, [&](const Entry& entry) { return octet_of(entry) < octet; });
      last = std::partition_point(first, last, [&](const Entry& entry) { return octet_of(entry) == octet; });
    }
  }
  void store(const Entry& entry, std::string_view raw, bool exact) {
    auto& value = values_[entry.value];
    if (!exact || value.fault == BodyFault::Respelled) {
      value.fault = BodyFault::Respelled;
      return;
    }
    if (value.found) value.fault = BodyFault::Repeated;
    if (!std::exchange(value.found, true))
      value.text = http::percent_decoded(raw, scratch_, Plus::Blank).substr(0, kLongestBodyValue);
  }

  const std::vector<Entry>& entries_;
  std::vector<FormValue>& values_;
  std::string name_;     // the name of the present field, decoded and without capitals
  std::string scratch_;  // the decoded value
};

void find_fields(const FormNames& names, std::string_view form, std::vector<FormValue>& values) {
  values.assign(names.size(), {});
  FormNameSearch search(names, values);
  while (!form.empty()) search.read(take_piece(form, '&'));
}

}  // namespace weir::policy
