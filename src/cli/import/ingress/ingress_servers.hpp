// Translates Ingresses into the nginx servers that ingress-nginx makes of them: one for each host and scheme,
// with its locations.
#pragma once

#include "cli/import/ingress/ingress.hpp"
#include "cli/import/read/model.hpp"

#include <vector>

namespace weir::cli::nginx {

[[nodiscard]] Configuration configuration_of(const std::vector<Ingress>& ingresses, Notes& notes);

}  // namespace weir::cli::nginx
