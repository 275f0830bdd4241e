// Reads the query of a request for a page.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace weir::admin {

// Removes the first parameter from the query. Returns its decoded name and value.
[[nodiscard]] std::pair<std::string, std::string> take_parameter(std::string_view& query);

}  // namespace weir::admin
