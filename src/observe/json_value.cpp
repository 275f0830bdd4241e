#include "weir/observe/json_value.hpp"

#include "weir/base/plain_number.hpp"

#include <boost/json.hpp>

namespace weir::observe {

namespace {

namespace json = boost::json;

void append(std::string& out, const json::value& value);

void append(std::string& out, const json::array& array) {
  out += '[';
  for (const auto& element : array) {
    if (&element != array.data()) out += ',';
    append(out, element);
  }
  out += ']';
}

void append(std::string& out, const json::object& object) {
  out += '{';
  for (const auto& entry : object) {
    if (&entry != &*object.begin()) out += ',';
    out += json::serialize(json::string(entry.key()));
    out += ':';
    append(out, entry.value());
  }
  out += '}';
}

void append(std::string& out, const json::value& value) {
  if (const auto* array = value.if_array())
    append(out, *array);
  else if (const auto* object = value.if_object())
    append(out, *object);
  else if (const auto* number = value.if_double())
    out += base::plain_number(*number);
  else
    out += json::serialize(value);
}

}  // namespace

std::string json_text(const json::value& value) {
  std::string out;
  append(out, value);
  return out;
}

std::string json_text(const json::object& object) {
  std::string out;
  append(out, object);
  return out;
}

}  // namespace weir::observe
