// Finds the address and the token of the admin listener to which a command sends requests.
#pragma once

#include "weir/cli/inspect.hpp"
#include "weir/config/settings.hpp"

#include <optional>
#include <string_view>

namespace weir::cli {

inline constexpr const char* kUsualAdmin = "127.0.0.1:9900";

// The options that the user typed. An option is empty if the user did not type it.
struct TypedAccess {
  std::string_view address;
  std::string_view token;
};

// Returns the address and the token to use. `file`: the configuration file; null if the user named no file.
// Typed options have priority over the file, and the file over kUsualAdmin and the environment variable
// WEIR_ADMIN_TOKEN. Returns nullopt if no address is typed and the file has no [admin] listener. The error
// says what is wrong with the address.
[[nodiscard]] base::Result<std::optional<AdminAccess>> find_access(const TypedAccess& typed,
                                                                   const config::Settings* file);

}  // namespace weir::cli
