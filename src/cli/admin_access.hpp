// Finds out which weir a command asks, and with which token.
#pragma once

#include "weir/cli/inspect.hpp"
#include "weir/config/settings.hpp"

#include <optional>
#include <string_view>

namespace weir::cli {

inline constexpr const char* kUsualAdmin = "127.0.0.1:9900";

// The options that the user typed; empty if not typed.
struct TypedAccess {
  std::string_view address;
  std::string_view token;
};

// Returns the address and token to use. Typed options have priority over the file. The file has priority over
// kUsualAdmin and the environment variable WEIR_ADMIN_TOKEN. Returns nullopt if no address is typed and the
// file has no [admin] listener. `file`: null without a file. The error says what is wrong with the address.
[[nodiscard]] base::Result<std::optional<AdminAccess>> find_access(const TypedAccess& typed,
                                                                   const config::Settings* file);

}  // namespace weir::cli
