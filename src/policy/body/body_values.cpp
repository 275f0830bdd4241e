#include "weir/policy/body_values.hpp"

#include "policy/body/decimal.hpp"
#include "policy/body/fold_case.hpp"
#include "policy/body/form_fields.hpp"
#include "policy/body/json_reader.hpp"
#include "policy/rules/pieces.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace weir::policy {

namespace {

template <class Number, class... Format>
std::string text_of_number(Number number, Format... format) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, format...).ptr;
  return {text.data(), end};
}

// Parses a JSON number. Returns infinity for a number that exceeds every double, and 0 for one that is too
// small.
double parse_double(std::string_view text) {
  double number = 0;
  const auto end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number).ec == std::errc{}) return number;
  const bool negative = text.starts_with('-');
  const auto digits = plain_digits(text.substr(negative ? 1 : 0));
  const bool large = digits && !digits->starts_with('0');
  const double amount = large ? std::numeric_limits<double>::infinity() : 0;
  return negative ? -amount : amount;
}

// Returns the canonical text of a JSON number. An integer of 64 bits keeps its digits. For any other number,
// returns the shortest text of the nearest double.
std::string spelled(std::string_view number) {
  const auto* begin = number.data();
  const auto* end = begin + number.size();
  std::int64_t whole = 0;
  if (const auto parsed = std::from_chars(begin, end, whole); parsed.ec == std::errc{} && parsed.ptr == end)
    return text_of_number(whole);
  std::uint64_t large = 0;
  if (const auto parsed = std::from_chars(begin, end, large); parsed.ec == std::errc{} && parsed.ptr == end)
    return text_of_number(large);
  constexpr double kWhole = 18446744073709551616.0;  // 2^64
  const double nearest = parse_double(number);
  if (nearest == 0) return "0";
  if (std::fabs(nearest) < kWhole && nearest == std::trunc(nearest))
    return text_of_number(nearest, std::chars_format::fixed);
  return text_of_number(nearest);
}

// Returns true if the text has the form of a media type, such as "application/json".
bool is_media_type(std::string_view text) noexcept {
  constexpr std::string_view kMarks = "/!#$&^_.+-";
  const auto fits = [&](char c) {
    const char l = static_cast<char>(c | 0x20);
    return (c >= '0' && c <= '9') || (l >= 'a' && l <= 'z') || kMarks.find(c) != std::string_view::npos;
  };
  return std::count(text.begin(), text.end(), '/') == 1 && std::all_of(text.begin(), text.end(), fits);
}

// Returns true if a parameter of a media type names another charset than UTF-8. `parameters` has no capitals.
bool names_other_charset(std::string_view parameters) noexcept {
  constexpr std::string_view kCharset = "charset";
  constexpr std::string_view kMarks = " \t\"'";
  for (auto at = parameters.find(kCharset); at != std::string_view::npos; at = parameters.find(kCharset)) {
    parameters.remove_prefix(at + kCharset.size());
    const auto equals = std::min(parameters.find('='), parameters.size());
    auto value = parameters.substr(std::min(equals + 1, parameters.size()));
    value = value.substr(0, value.find(';'));
    const auto begin = std::min(value.find_first_not_of(kMarks), value.size());
    value = value.substr(begin, value.find_last_not_of(kMarks) + 1 - begin);
    const bool named = trimmed(parameters.substr(0, equals)).empty();
    if (!named || (value != "utf-8" && value != "utf8")) return true;
  }
  return false;
}

constexpr std::string_view kFormType = "application/x-www-form-urlencoded";

// Returns true if some servers would read the body as a form and others would not. Some servers search the
// whole Content-Type for "urlencoded" or "multipart", and others compare only its beginning. REQUIRES: `text`
// (the whole Content-Type) and `type` (its media type) are in lower case.
bool is_form_for_some(std::string_view text, std::string_view type) noexcept {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  const bool multipart = type.starts_with("multipart/") && type.find('+') == std::string_view::npos;
  return (has("urlencoded") && type != kFormType) || (has("multipart") && !multipart);
}

// Returns true if the body is blank, or if its first octet that is not a blank may begin a form. Lenient JSON
// parsers skip byte order marks, comments and other marks before the JSON text. None of these marks begins a
// form.
bool begins_like_form(std::string_view body) noexcept {
  constexpr std::string_view kMarks = "-._~*%+&=$@!";
  const auto begin = body.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return true;
  const char c = body[begin];
  const char l = static_cast<char>(c | 0x20);
  return (c >= '0' && c <= '9') || (l >= 'a' && l <= 'z') || kMarks.find(c) != std::string_view::npos;
}

}  // namespace

// Returns the body's type according to Content-Type, or the fault of the field. A media type ends at a blank
// as well as at ';', because some servers end it at a blank.
BodyValues::ContentType BodyValues::content_type_of(const http::Fields& fields) {
  const http::Field* first = nullptr;
  for (const auto& field : fields) {
    if (!http::equal_ignoring_case(field.name, "Content-Type")) continue;
    if (first != nullptr && first->value != field.value) return {.fault = BodyFault::ContentType};
    first = &field;
  }
  if (first == nullptr || first->value.empty()) return {};
  std::string text(first->value);
  fold_case(text);
  const auto type = std::string_view(text).substr(0, text.find_first_of("; \t"));
  if (!is_media_type(type) || text.find(',') != std::string::npos || is_form_for_some(text, type))
    return {.fault = BodyFault::ContentType};
  if (names_other_charset(std::string_view(text).substr(type.size()))) return {.fault = BodyFault::Charset};
  if (type == kFormType) return {.type = BodyType::Form};
  if (type.starts_with("multipart/")) return {.type = BodyType::Multipart};
  const bool json = type.ends_with("/json") || type.ends_with("+json");
  return {.type = json ? BodyType::Json : BodyType::Other};
}

void BodyValues::read(const BodyNames& names, const http::RequestHead& head, std::string_view body) {
  clear();
  names_ = &names;
  if (body.empty()) return;
  const auto [type, fault] = content_type_of(head.fields);
  of_json_ = of_fields_ = fault;
  if (fault != BodyFault::None) return;
  if (names.pointers_.size() != 0) read_json(type, body);
  if (names.fields_.size() != 0) read_form(type, body, head.bounds.parameters);
}

void BodyValues::clear() noexcept {
  names_ = nullptr;
  of_json_ = of_fields_ = BodyFault::None;
  json_fault_ = JsonFault::None;
  std::vector<JsonValue>().swap(json_);
  std::vector<FormValue>().swap(fields_);
}

// Reads the body as JSON whatever its Content-Type says, because a server may do the same.
void BodyValues::read_json(BodyType type, std::string_view body) {
  JsonReader reader(names_->pointers_);
  reader.read(body);
  json_fault_ = reader.finish(json_);
  if (body.starts_with(kByteOrderMark)) json_fault_ = JsonFault::ByteOrderMark;
  if (json_fault_ == JsonFault::None) {
    for (auto& value : json_)
      if (value.kind == JsonValue::Kind::Number && !value.is_cut) value.text = spelled(value.text);
    return;
  }
  json_.clear();
  const bool form = type == BodyType::Form || type == BodyType::Multipart;
  if (form && begins_like_form(body)) {
    json_fault_ = JsonFault::None;
    return;
  }
  of_json_ = type == BodyType::Other && json_fault_ == JsonFault::Malformed ? BodyFault::NeitherKind
                                                                            : BodyFault::NotJson;
}

// Reads the body as a form unless its Content-Type says JSON. Under any other type, a server may read a form.
void BodyValues::read_form(BodyType type, std::string_view body, std::size_t most) {
  if (type == BodyType::Json) return;
  if (type == BodyType::Multipart)
    of_fields_ = BodyFault::Multipart;
  else if (static_cast<std::size_t>(std::count(body.begin(), body.end(), '&')) >= most)
    of_fields_ = BodyFault::TooManyFields;
  else
    find_fields(names_->fields_, body, fields_);
}

const JsonValue* BodyValues::json_value(std::string_view pointer) const {
  const auto number = !json_.empty() ? names_->pointers_.find(pointer) : std::nullopt;
  return number ? &json_[*number] : nullptr;
}

const FormValue* BodyValues::form_value(std::string_view name) const {
  const auto number = !fields_.empty() ? names_->fields_.find(name) : std::nullopt;
  return number ? &fields_[*number] : nullptr;
}

std::string_view BodyValues::json(std::string_view pointer) const {
  const auto* value = json_value(pointer);
  return value != nullptr ? std::string_view(value->text) : std::string_view{};
}

std::string_view BodyValues::field(std::string_view name) const {
  const auto* value = form_value(name);
  return value != nullptr ? std::string_view(value->text) : std::string_view{};
}

BodyFault BodyValues::fault_of_json(std::string_view pointer) const {
  if (of_json_ != BodyFault::None) return of_json_;
  const auto* value = json_value(pointer);
  if (value == nullptr) return BodyFault::None;
  if (value->repeated) return BodyFault::Repeated;
  if (value->kind == JsonValue::Kind::Structured) return BodyFault::Structured;
  return value->kind == JsonValue::Kind::Number && value->is_cut ? BodyFault::LongNumber : BodyFault::None;
}

BodyFault BodyValues::fault_of_field(std::string_view name) const {
  if (of_fields_ != BodyFault::None) return of_fields_;
  const auto* value = form_value(name);
  return value != nullptr ? value->fault : BodyFault::None;
}

}  // namespace weir::policy
