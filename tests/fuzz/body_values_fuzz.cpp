// Fuzzes the values that keys read from bodies. A form field that a simple reader finds once must have the
// value that the simple reader decodes. A JSON string or boolean must be the value that Boost.JSON reads.
#include "fuzz/input.hpp"

#include "weir/policy/body_values.hpp"

#include <string>
#include <string_view>

#include <boost/json.hpp>

namespace weir::fuzz {
namespace {

namespace json = boost::json;
using policy::BodyNames;
using policy::BodyValues;
using policy::JsonFault;

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

void check_form(std::string_view body) {
  http::Fields fields;
  fields.push_back({"Content-Type", "application/x-www-form-urlencoded", http::FieldId::Other});
  BodyNames names;
  names.add_field("a");
  BodyValues values;
  values.read(names, fields, body);
  unsigned found = 0;
  std::string first;
  for (std::size_t at = 0; at <= body.size();) {
    const auto end = std::min(body.find('&', at), body.size());
    const auto piece = body.substr(at, end - at);
    const auto equals = std::min(piece.find('='), piece.size());
    if (decoded(piece.substr(0, equals), true) == "a" && found++ == 0)
      first = decoded(piece.substr(std::min(equals + 1, piece.size())), true);
    at = end + 1;
  }
  require((values.fault_of_field("a") != JsonFault::None) == (found > 1), "a repeated field is a fault");
  require(values.field("a") == first.substr(0, policy::kLongestBodyValue), "a field has its decoded value");
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
    if (fault == JsonFault::Repeated) continue;
    require(body.empty() || (fault != JsonFault::None) == static_cast<bool>(ec) ||
                fault == JsonFault::ByteOrderMark,
            "a fault is a body that is not JSON");
    if (ec || fault != JsonFault::None) continue;
    const auto* there = document.find_pointer(json::string_view(pointer.data(), pointer.size()), ec);
    ec = {};
    const auto value = values.json(pointer);
    if (there == nullptr || there->is_structured() || there->is_null())
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
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  weir::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
