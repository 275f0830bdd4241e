// What one description of a configuration (describe() in settings.hpp) says otherwise than another. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

// What `before` says and `now` does not, each as "no longer: …", then what `now` says and `before` does not,
// as "now: …": in the order of their text, each once. A line that is set in is told with the name of what it
// stands under; rules, which stand under many routes, by themselves, and where one applies to a route that it
// did not apply to, that. Then, of routes and of a rule's overrides, of which the first that matches decides:
// where two have changed places. Lines of blanks alone say nothing. Takes time by the texts' length, however
// many lines differ.
[[nodiscard]] std::vector<std::string> differences(std::string_view before, std::string_view now);

}  // namespace weir::app
