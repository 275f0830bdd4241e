#include "cli/admin_access.hpp"

#include <cstdlib>
#include <string>

namespace weir::cli {

base::Result<std::optional<AdminAccess>> find_access(const TypedAccess& typed, const config::Settings* file) {
  AdminAccess access;
  if (file != nullptr) access.token = file->admin.token;
  if (!typed.token.empty()) access.token = typed.token;
  if (const char* known = std::getenv("WEIR_ADMIN_TOKEN"); access.token.empty() && known != nullptr)
    access.token = known;
  if (file != nullptr && typed.address.empty()) {
    if (!file->admin.address) return std::optional<AdminAccess>();
    access.address = *file->admin.address;
    return std::optional(std::move(access));
  }
  auto address = base::parse_endpoint(typed.address.empty() ? kUsualAdmin : typed.address);
  if (!address) return address.error();
  access.address = std::move(*address);
  return std::optional(std::move(access));
}

}  // namespace weir::cli
