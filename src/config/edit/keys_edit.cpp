#include "weir/config/keys_edit.hpp"

#include "config/read/client/keys_file.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace weir::config {

namespace {

using FileLines = std::vector<std::string>;
using policy::ApiKeyOwner;
using policy::ApiKeys;

constexpr std::array<std::string_view, 4> kOwnerKeys{"user", "org", "tier", "service"};

// Splits a text into lines, which keep their line breaks.
FileLines lines_of(std::string_view text) {
  FileLines lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::string_view trimmed_line(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\n";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  return line.substr(0, line.find_last_not_of(kBlanks) + 1);
}

bool is_remark(std::string_view line) {
  const auto plain = trimmed_line(line);
  return plain.empty() || plain.front() == '#';
}

// Returns which of kOwnerKeys the line sets, as an index: 0 for "user = …". Returns kOwnerKeys.size() for any
// other line.
std::size_t owner_key_in(std::string_view line) {
  const auto plain = trimmed_line(line);
  const auto found = std::find_if(kOwnerKeys.begin(), kOwnerKeys.end(), [&](std::string_view key) {
    return plain.starts_with(key) && trimmed_line(plain.substr(key.size())).starts_with('=');
  });
  return static_cast<std::size_t>(found - kOwnerKeys.begin());
}

// Returns what follows the value in a line "user = …": a comment, if there is one, and the line break.
std::string_view rest_after_value(std::string_view line) {
  auto end = line.find_first_of("\"'", line.find('='));
  if (end == std::string_view::npos) return "\n";
  const char quote = line[end];
  while (++end < line.size() && line[end] != quote)
    if (quote == '"' && line[end] == '\\') ++end;
  return end < line.size() ? line.substr(end + 1) : "\n";
}

// Returns the text as a TOML string.
std::string toml_text(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto octet = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out.append(1, '\\').append(1, c);
    else if (octet < 0x20 || octet == 0x7f)
      out.append("\\u00").append(1, kHex[octet >> 4]).append(1, kHex[octet & 15]);
    else
      out += c;
  }
  return out + '"';
}

// Returns the values of the owner, in the order of kOwnerKeys.
std::array<const std::string*, kOwnerKeys.size()> values_of(const ApiKeyOwner& owner) {
  return {&owner.user, &owner.org, &owner.tier, &owner.service};
}

std::string owner_line(std::size_t key, const std::string& value) {
  return value.empty() ? "" : std::string(kOwnerKeys[key]) + " = " + toml_text(value) + "\n";
}

// The lines of one [[key]] table, as indexes from 0: `begin` is its header, `end` the line after its last
// entry.
struct TableLines {
  std::size_t begin, end;
};

// Returns the table whose header is in line `number`, counted from 1. Comments directly above the next header
// belong to the next table. Returns nullopt if the line is no "[[key]]".
std::optional<TableLines> table_at(const FileLines& lines, int number) {
  const auto begin = static_cast<std::size_t>(number - 1);
  if (begin >= lines.size() || !trimmed_line(lines[begin]).starts_with("[[")) return std::nullopt;
  auto end = begin + 1;
  while (end < lines.size() && !trimmed_line(lines[end]).starts_with('[')) ++end;
  while (end > begin + 1 && is_remark(lines[end - 1])) --end;
  return TableLines{begin, end};
}

std::string text_of_lines(const FileLines& lines, std::size_t begin, std::size_t end) {
  std::string text;
  for (auto i = begin; i < end; ++i) text += lines[i];
  return text;
}

std::string with_line_break(std::string text) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

std::string with_new_key(std::string_view text, const ApiKeys::Sha256& digest, const ApiKeyOwner& owner) {
  auto out = with_line_break(std::string(text));
  if (!out.empty()) out += '\n';
  out += "[[key]]\nsha256 = \"" + ApiKeys::hex_of(digest) + "\"\n";
  for (std::size_t key = 0; key < kOwnerKeys.size(); ++key) out += owner_line(key, *values_of(owner)[key]);
  return out;
}

// Returns the text of `lines` with the new values of a key's owner. A changed value replaces the old one on
// its line, whose comment stays. Removes the lines of values that are now empty, and adds lines for values
// that had none. `table`: the lines of the key. `was`: the owner in `lines`. `owner`: the new owner.
std::string with_owner(const FileLines& lines, const TableLines& table, const ApiKeyOwner& was,
                       const ApiKeyOwner& owner) {
  const auto before = values_of(was), after = values_of(owner);
  std::array<bool, kOwnerKeys.size()> has_line{};
  auto out = text_of_lines(lines, 0, table.begin);
  for (auto i = table.begin; i < table.end; ++i) {
    const auto& line = lines[i];
    const auto key = owner_key_in(line);
    if (key < kOwnerKeys.size()) has_line[key] = true;
    if (key == kOwnerKeys.size() || *before[key] == *after[key])
      out += line;
    else if (!after[key]->empty())
      (out += line.substr(0, line.find('=') + 1) + " " + toml_text(*after[key])) += rest_after_value(line);
  }
  out = with_line_break(std::move(out));
  for (std::size_t key = 0; key < kOwnerKeys.size(); ++key)
    if (!has_line[key]) out += owner_line(key, *after[key]);
  return out + text_of_lines(lines, table.end, lines.size());
}

// Returns the text without the table and the blank lines after it. Comments above the table stay, because
// they may be about more keys than this one.
std::string without_table(const FileLines& lines, const TableLines& table) {
  auto rest = table.end;
  while (rest < lines.size() && trimmed_line(lines[rest]).empty()) ++rest;
  return text_of_lines(lines, 0, table.begin) + text_of_lines(lines, rest, lines.size());
}

EditedKeys refusal(KeyEditFault fault, std::string why) {
  EditedKeys refused;
  refused.fault = fault;
  refused.why = std::move(why);
  return refused;
}

EditedKeys other_form(const std::string& file) {
  return refusal(KeyEditFault::OtherForm,
                 file +
                     " writes the key in a form that weir cannot change; write each key as a [[key]] table "
                     "with one entry a line, or change the file by hand");
}

}  // namespace

EditedKeys edit_keys(std::string_view text, const std::string& file, const KeyEdit& edit) {
  ConfigErrors mistakes;
  auto present = read_keys(text, file, mistakes);
  if (!mistakes.empty()) return refusal(KeyEditFault::Mistakes, mistakes.lines().front());
  const auto found = std::find_if(present.lines.begin(), present.lines.end(), [&](const KeyLine& line) {
    return edit.digest ? line.digest == *edit.digest : ApiKeys::id_of(line.digest) == edit.id;
  });
  const bool known = found != present.lines.end();
  if (!known && (!edit.digest || !edit.owner))
    return refusal(KeyEditFault::Unknown,
                   file + " has no key " + (edit.digest ? ApiKeys::id_of(*edit.digest) : in_quotes(edit.id)) +
                       "; GET /api/client-keys lists the keys");
  EditedKeys edited;
  edited.digest = known ? found->digest : *edit.digest;
  edited.keys = std::move(present.ring);
  edited.keys.for_each([&](const ApiKeys::Sha256& digest, const ApiKeyOwner& holder) {
    if (digest == edited.digest) edited.was = holder;
  });
  edited.owner = edited.was.value_or(ApiKeyOwner{});
  if (edit.owner) edited.owner = edit.owner->applied_to(edited.owner);
  const auto lines = lines_of(text);
  const auto table = known ? table_at(lines, found->line) : std::nullopt;
  if (known && !table) return other_form(file);
  if (edit.owner)
    edited.keys.set(edited.digest, edited.owner);
  else
    edited.keys.remove(edited.digest);
  edited.text = !known       ? with_new_key(text, edited.digest, edited.owner)
                : edit.owner ? with_owner(lines, *table, *edited.was, edited.owner)
                             : without_table(lines, *table);
  ConfigErrors after;
  if (read_keys(edited.text, file, after).ring != edited.keys || !after.empty()) return other_form(file);
  return edited;
}

}  // namespace weir::config
