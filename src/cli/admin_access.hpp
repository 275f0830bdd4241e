// Which weir a command asks, and with what token.
#pragma once

#include "weir/cli/inspect.hpp"
#include "weir/config/settings.hpp"

#include <optional>
#include <string_view>

namespace weir::app {

inline constexpr const char* kUsualAdmin = "127.0.0.1:9900";

// What was typed; empty: nothing was.
struct TypedAccess {
  std::string_view address;
  std::string_view token;
};

// What is typed goes before what the file says, and that before what is usual: kUsualAdmin, and the token
// that the environment has as WEIR_ADMIN_TOKEN. Nobody where the file (null: none is given) has no [admin]
// and no address is typed. An error says what is wrong with the address.
[[nodiscard]] base::Result<std::optional<AdminAccess>> find_access(const TypedAccess& typed,
                                                                   const Settings* file);

}  // namespace weir::app
