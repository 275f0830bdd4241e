#include "weir/policy/routing/field_edits.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace weir::policy {

namespace {

constexpr std::string_view kLineEnd = "\r\n";

// Appends the line of the field, unless its value is empty. Removes blanks at both ends of the value; a
// placeholder without a value may leave such blanks.
void append_field(const EditedField& field, const TemplateValues& values, std::string& lines) {
  const auto begin = lines.size();
  lines.append(field.name).append(": ");
  const auto value = lines.size();
  field.value.append(lines, values, Purpose::Field);
  lines.erase(value, std::min(lines.find_first_not_of(' ', value), lines.size()) - value);
  while (lines.size() > value && lines.back() == ' ') lines.pop_back();
  if (lines.size() == value)
    lines.resize(begin);
  else
    lines += kLineEnd;
}

// Removes the lines of fields with this name.
void remove_lines(std::string& lines, std::string_view name) {
  for (std::size_t at = 0; at < lines.size();) {
    const auto end = std::min(lines.find(kLineEnd, at), lines.size() - kLineEnd.size()) + kLineEnd.size();
    const auto line = std::string_view(lines).substr(at, end - at);
    const bool same = line.size() > name.size() && line[name.size()] == ':' &&
                      http::is_same_name(line.substr(0, name.size()), name);
    if (same)
      lines.erase(at, end - at);
    else
      at = end;
  }
}

}  // namespace

void FieldEdits::add(EditedField field) {
  if (field.replaces) dropped.add(field.name);
  uses_token = uses_token || field.value.uses_token();
  written.push_back(std::move(field));
}

void FieldEdits::remove(std::string name) {
  dropped.add(name);
  removed.push_back(std::move(name));
}

void drop_fields(const FieldEdits& edits, http::Fields& fields) noexcept {
  if (edits.dropped.empty()) return;
  for (auto& field : fields)
    if (edits.dropped.contains(field)) field.hop_by_hop = true;
}

void append_lines(const FieldEdits& edits, const TemplateValues& values, std::string& lines) {
  for (const auto& field : edits.written) append_field(field, values, lines);
}

void edit_own_lines(const FieldEdits& edits, const TemplateValues& values, std::string& lines) {
  for (const auto& field : edits.written) {
    if (field.describes_body) continue;
    if (field.replaces) remove_lines(lines, field.name);
    append_field(field, values, lines);
  }
}

}  // namespace weir::policy
