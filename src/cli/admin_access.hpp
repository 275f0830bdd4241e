// Finds the admin listener that a command asks, and the token for it.
#pragma once

#include "weir/cli/inspect.hpp"
#include "weir/config/settings.hpp"

#include <optional>
#include <string_view>

namespace weir::cli {

inline constexpr const char* kUsualAdmin = "127.0.0.1:9900";

// The options that the user typed. An option that the user did not type is empty.
struct TypedAccess {
  std::string_view address;
  std::string_view token;
};

// Returns the address and the token to use. Typed options have priority over `file`, and `file` over
// kUsualAdmin and the environment variable WEIR_ADMIN_TOKEN. `file`: the configuration; null if the user
// named none. Returns nullopt if no address is typed and the file has no [admin] listener. The error says
// what is wrong with the address.
[[nodiscard]] base::Result<std::optional<AdminAccess>> find_access(const TypedAccess& typed,
                                                                   const config::Settings* file);

}  // namespace weir::cli
