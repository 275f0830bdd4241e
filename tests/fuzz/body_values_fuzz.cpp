// Fuzzes the values that keys read from bodies. A form field that a simple reader finds once must have the
// value that the simple reader decodes. A JSON string or boolean must be the value that Boost.JSON reads. If
// weir does not refuse a body, lenient readers of JSON and of forms must read the value by which weir counts
// the request.
#include "fuzz/input.hpp"

#include "weir/policy/body_values.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/inspection.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

namespace weir::fuzz {
namespace {

namespace json = boost::json;
using policy::BodyFault;
using policy::BodyNames;
using policy::BodyValues;

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string decoded(std::string_view text, bool blanks) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool coded =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    out += coded                      ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]))
           : text[i] == '+' && blanks ? ' '
                                      : text[i];
    if (coded) i += 2;
  }
  return out;
}

// Returns the text with all ASCII letters in lower case.
std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

http::RequestHead head_of(std::initializer_list<std::string_view> types) {
  http::RequestHead head;
  for (const auto type : types) head.fields.push_back({"Content-Type", type, http::FieldId::ContentType});
  head.bounds.parameters = 1 << 20;
  return head;
}

constexpr std::string_view kForm = "application/x-www-form-urlencoded";

void check_form(std::string_view body) {
  BodyNames names;
  names.add_field("a");
  BodyValues values;
  values.read(names, head_of({kForm}), body);
  if (values.fault_of_field("a") == BodyFault::Respelled) return;
  unsigned found = 0;
  std::string first;
  for (std::size_t at = 0; at <= body.size();) {
    const auto end = std::min(body.find('&', at), body.size());
    const auto piece = body.substr(at, end - at);
    const auto equals = std::min(piece.find('='), piece.size());
    if (lower(decoded(piece.substr(0, equals), true)) == "a" && found++ == 0)
      first = decoded(piece.substr(std::min(equals + 1, piece.size())), true);
    at = end + 1;
  }
  require((values.fault_of_field("a") != BodyFault::None) == (found > 1), "a repeated field is a fault");
  require(values.field("a") == first.substr(0, policy::kLongestBodyValue), "a field has its decoded value");
}

// Returns true if some servers end a name before this byte, or ignore this byte before a name.
bool is_name_end(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == '[' || c == ']';
}

// Returns the name without what some servers ignore before it: blanks, brackets, '?' and byte order marks.
std::string without_beginning(std::string name) {
  for (;;) {
    const std::size_t ignored = name.starts_with("\xef\xbb\xbf")                            ? 3
                                : !name.empty() && (name[0] == '?' || is_name_end(name[0])) ? 1
                                                                                            : 0;
    if (ignored == 0) return name;
    name.erase(0, ignored);
  }
}

// Decodes the escapes "%u0000" to "%u00ff", which only .NET Framework decodes.
std::string without_unicode_escapes(std::string text) {
  for (std::size_t at = text.find("%u00"); at != std::string::npos; at = text.find("%u00", at + 1))
    if (at + 5 < text.size() && digit(text[at + 4]) >= 0 && digit(text[at + 5]) >= 0)
      text.replace(at, 6, 1, static_cast<char>(digit(text[at + 4]) * 16 + digit(text[at + 5])));
  return text;
}

// Returns the values that servers may see in a form. Some servers divide a form at ';', too. Some ignore
// blanks, brackets and other marks before names, and the case of names. Some end names at a blank, a NUL or a
// bracket. Some decode "%u0061".
std::vector<std::string> values_for_form_servers(std::string_view body) {
  std::vector<std::string> values;
  for (std::size_t at = 0; at <= body.size();) {
    const auto end = std::min(body.find_first_of("&;", at), body.size());
    const auto piece = body.substr(at, end - at);
    const auto equals = std::min(piece.find('='), piece.size());
    const auto value = std::string(piece.substr(std::min(equals + 1, piece.size())));
    auto name = without_beginning(
        lower(decoded(without_unicode_escapes(std::string(piece.substr(0, equals))), true)));
    name.erase(std::find_if(name.begin(), name.end(), is_name_end), name.end());
    if (name == "a") values.push_back(decoded(without_unicode_escapes(value), true));
    at = end + 1;
  }
  return values;
}

// Returns the values of the member "a" that lenient servers may see in JSON. Some servers ignore the case of
// names, and blanks and a byte order mark before the JSON text. Some accept comments, commas at the end and
// broken UTF-8.
std::vector<std::string> values_for_json_servers(std::string_view body) {
  const auto begin = body.find_first_not_of(std::string_view(" \t\r\n\0\xef\xbb\xbf", 8));
  body.remove_prefix(std::min(begin, body.size()));
  json::parse_options options;
  options.max_depth = policy::kDeepestJson;
  options.allow_comments = options.allow_trailing_commas = options.allow_invalid_utf8 = true;
  json::error_code ec;
  json::stream_parser parser({}, options);
  parser.write_some(body.data(), body.size(), ec);
  if (ec || !parser.done()) return {};
  std::vector<std::string> values;
  if (const auto document = parser.release(); document.is_object())
    for (const auto& [key, value] : document.get_object())
      if (lower(std::string(key)) == "a" && value.is_string()) values.emplace_back(value.get_string());
  return values;
}

// Reads the body for a rule with the key `json:/a|form:a`. Unless weir refuses the request, each value that
// a lenient server may see must be the value by which the rule counts.
void check_readings(std::string_view body, const http::RequestHead& head, bool form) {
  static const policy::Rule rule{
      .name = "r",
      .match = {},
      .key = {policy::parse_key_part("json:/a|form:a").value()},
      .limiter = limit::Limiter(limit::TokenBucket::make({1, base::Duration(1)}, 1).value()),
      .overrides = {},
      .tiers = {},
      .refusal_body = {}};
  static const auto names = policy::body_names({&rule, 1});
  BodyValues values;
  values.read(names, head, body);
  policy::Request request{.head = &head, .path = "/", .host = {}, .route = {}, .client = {}};
  request.body = {policy::RequestBody::State::Whole, body, &values};
  if (policy::ambiguity_in_key(rule, request)) return;
  const auto counted = values.json("/a").empty() ? values.field("a") : values.json("/a");
  const auto check = [&](const std::string& seen, const char* law) {
    require(seen.empty() || counted == std::string_view(seen).substr(0, policy::kLongestBodyValue), law);
  };
  if (form)
    for (const auto& seen : values_for_form_servers(body)) check(seen, "a server of forms sees the value");
  for (const auto& seen : values_for_json_servers(body)) check(seen, "a server of JSON sees the value");
}

void check_json(std::string_view body) {
  constexpr std::string_view kPointers[] = {"/a", "/a/b", "/0", "/a~1b"};
  BodyNames names;
  for (const auto pointer : kPointers) names.add_pointer(pointer);
  BodyValues values;
  values.read(names, {}, body);
  json::error_code ec;
  json::parse_options options;
  options.max_depth = policy::kDeepestJson;
  const auto document = json::parse(json::string_view(body.data(), body.size()), ec, {}, options);
  for (const auto pointer : kPointers) {
    const auto fault = values.fault_of_json(pointer);
    if (fault == BodyFault::Repeated || fault == BodyFault::LongNumber) continue;
    const bool is_json = fault == BodyFault::None || fault == BodyFault::Structured;
    require(body.empty() || !is_json == static_cast<bool>(ec) ||
                values.json_fault() == policy::JsonFault::ByteOrderMark,
            "a fault is a body that is not JSON");
    if (ec || !is_json) continue;
    const auto* there = document.find_pointer(json::string_view(pointer.data(), pointer.size()), ec);
    ec = {};
    const auto value = values.json(pointer);
    // Boost.JSON finds no member. weir ignores the case of names, so it may have found one.
    if (there == nullptr) continue;
    require((fault == BodyFault::Structured) == there->is_structured(), "an object or an array is a fault");
    if (there->is_structured() || there->is_null())
      require(value.empty(), "what is absent has no value");
    else if (there->is_string())
      require(value == std::string_view(there->get_string()).substr(0, policy::kLongestBodyValue),
              "the text");
    else if (there->is_bool())
      require(value == (there->get_bool() ? "true" : "false"), "the boolean");
    else
      require(!value.empty(), "the number");
  }
}

void run(std::string_view input) {
  check_form(input);
  check_json(input);
  check_readings(input, head_of({}), true);
  check_readings(input, head_of({kForm}), true);
  check_readings(input, head_of({"application/x-www-form-urlencoded x; charset=utf-8"}), true);
  check_readings(input, head_of({"application/json", kForm}), true);
  check_readings(input, head_of({"text/plain"}), true);
  check_readings(input, head_of({"application/x-www-form-urlencoded+json"}), true);
  check_readings(input, head_of({"application/json; x=urlencoded"}), true);
  check_readings(input, head_of({"application/json"}), false);
  check_readings(input, head_of({"multipart/form-data; boundary=x"}), false);
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  weir::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
