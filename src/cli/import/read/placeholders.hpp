// Translates texts with variables of nginx, such as "https://$host$request_uri", into texts with placeholders
// of weir, such as "https://{host}{uri}". Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace weir::cli::nginx {

// Variables that have the same value for all requests of a server. The key is the name without "$".
using Constants = std::map<std::string, std::string>;

struct PlaceholderText {
  std::string text;
  std::string unknown;  // first variable without a placeholder in weir; empty: none
};

[[nodiscard]] PlaceholderText with_placeholders(std::string_view text, const Constants& constants = {});

}  // namespace weir::cli::nginx
