// Comma-separated lists of field values (RFC 9110 §5.6.1).
#pragma once

#include <string_view>

namespace weir::http {

// Calls `each` with every non-empty element of the list, without the white space around it.
template <class Each>
void for_each_token(std::string_view list, Each each) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    auto token = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    while (!token.empty() && (token.front() == ' ' || token.front() == '\t')) token.remove_prefix(1);
    while (!token.empty() && (token.back() == ' ' || token.back() == '\t')) token.remove_suffix(1);
    if (!token.empty()) each(token);
  }
}

}  // namespace weir::http
