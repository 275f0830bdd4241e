#include "config/read/environment.hpp"

#include <algorithm>
#include <cstdlib>

namespace weir::config {

namespace {

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// Returns the text as a Result. The type must be explicit, because a string could also convert to an Error.
base::Result<std::string> found(std::string text) {
  return base::Result<std::string>(boost::system::in_place_value, std::move(text));
}

// Returns the value that replaces a reference. `reference`: the text between "${" and "}".
base::Result<std::string> look_up(std::string_view reference) {
  const auto mark = reference.find(":-");
  const std::string name(reference.substr(0, mark));
  if (!is_name(name))
    return base::Error{"\"${" + std::string(reference) +
                       "}\" names no environment variable; expected ${NAME} or ${NAME:-text}"};
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): weir sets no variables
  if (mark != std::string_view::npos && (value == nullptr || *value == '\0'))
    return found(std::string(reference.substr(mark + 2)));
  if (value == nullptr)
    return base::Error{"environment variable " + name + " is not set; set it, or write ${" + name +
                       ":-text} for a default"};
  return found(value);
}

}  // namespace

base::Result<std::string> expand_environment(std::string_view text) {
  std::string expanded;
  while (true) {
    const auto start = text.find("${");
    expanded.append(text.substr(0, start));
    if (start == std::string_view::npos) return found(std::move(expanded));
    const auto end = text.find('}', start);
    if (end == std::string_view::npos)
      return base::Error{"\"${\" without \"}\"; expected ${NAME} or ${NAME:-text}"};
    const auto value = look_up(text.substr(start + 2, end - start - 2));
    if (!value) return value.error();
    expanded.append(*value);
    text.remove_prefix(end + 1);
  }
}

}  // namespace weir::config
