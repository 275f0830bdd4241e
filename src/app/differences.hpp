// What one text says otherwise than another, line by line. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

// Lines of `before` that `now` has not, each as "no longer: …", then lines of `now` that `before` has not, as
// "now: …": in the order of their text, each once, without the blanks that it begins with. Lines of blanks
// alone say nothing. Takes time by the texts' length, however many lines differ.
[[nodiscard]] std::vector<std::string> differences(std::string_view before, std::string_view now);

}  // namespace weir::app
