// Makes the servers of a controller of its Ingresses: a server for each host and scheme, with its locations.
#pragma once

#include "cli/import/ingress/ingress.hpp"
#include "cli/import/read/model.hpp"

#include <vector>

namespace weir::cli::nginx {

[[nodiscard]] Configuration configuration_of(const std::vector<Ingress>& ingresses, Notes& notes);

}  // namespace weir::cli::nginx
