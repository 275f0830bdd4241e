#include "config/schema/json_layout.hpp"

#include "weir/observe/json_value.hpp"

#include <algorithm>

#include <boost/json/value.hpp>

namespace weir::config {

namespace {

namespace json = boost::json;

constexpr std::size_t kLine = 110;  // the most characters of a line that has several values

bool is_scalar(const json::value& value) {
  return !value.is_object() && !value.is_array();
}

// Returns true for an object or an array whose members are all scalars.
bool is_flat(const json::value& value) {
  if (const auto* array = value.if_array()) return std::all_of(array->begin(), array->end(), is_scalar);
  const auto* object = value.if_object();
  return object == nullptr || std::all_of(object->begin(), object->end(),
                                          [](const auto& entry) { return is_scalar(entry.value()); });
}

class Layout {
 public:
  std::string text;

  // Appends the value to `text`. `used_width`: the width of the text that precedes the value on its line.
  void put(const json::value& value, std::size_t depth, std::size_t used_width) {
    const auto line = on_one_line(value);
    if (is_scalar(value) || (is_flat(value) && 2 * depth + used_width + line.size() <= kLine))
      text += line;
    else if (const auto* array = value.if_array())
      put_array(*array, depth);
    else
      put_object(value.get_object(), depth);
  }

 private:
  static std::string on_one_line(const json::value& value) {
    std::string line;
    if (const auto* array = value.if_array()) {
      for (const auto& element : *array) line += (line.empty() ? "" : ", ") + observe::json_text(element);
      return "[" + line + "]";
    }
    const auto* object = value.if_object();
    if (object == nullptr) return observe::json_text(value);
    for (const auto& [name, inner] : *object)
      line += (line.empty() ? "" : ", ") + observe::json_text(json::string(name)) + ": " +
              observe::json_text(inner);
    return "{" + line + "}";
  }

  void break_line(std::size_t depth) { text.append("\n").append(2 * depth, ' '); }

  void put_array(const json::array& array, std::size_t depth) {
    text += '[';
    for (const auto& element : array) {
      if (&element != &array.front()) text += ',';
      break_line(depth + 1);
      put(element, depth + 1, 0);
    }
    break_line(depth);
    text += ']';
  }

  void put_object(const json::object& object, std::size_t depth) {
    text += '{';
    bool first = true;
    for (const auto& [name, inner] : object) {
      if (!first) text += ',';
      first = false;
      break_line(depth + 1);
      const auto key = observe::json_text(json::string(name)) + ": ";
      text += key;
      put(inner, depth + 1, key.size());
    }
    break_line(depth);
    text += '}';
  }
};

}  // namespace

std::string laid_out(const boost::json::value& value) {
  Layout layout;
  layout.put(value, 0, 0);
  return std::move(layout.text) + "\n";
}

}  // namespace weir::config
