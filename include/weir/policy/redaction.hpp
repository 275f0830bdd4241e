// What a log may say of a request's target: where a client's identity is read from the query, its values are
// credentials, or as good as ones, and no log has them.
#pragma once

#include "weir/policy/identity.hpp"

#include <string>
#include <string_view>

namespace weir::policy {

// `target`, with "***" for the value of each parameter that `settings` reads a client's key, user, org,
// service or device from, however its name is spelt. The same view where there is none, else one of
// `scratch`.
[[nodiscard]] std::string_view redacted(const ClientSettings& settings, std::string_view target,
                                        std::string& scratch);

}  // namespace weir::policy
