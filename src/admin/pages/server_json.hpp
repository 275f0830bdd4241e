// The JSON of a server of an upstream.
#pragma once

#include "weir/admin/figures.hpp"

#include <boost/json/object.hpp>

namespace weir::admin {

[[nodiscard]] boost::json::object server_json(const ServerFigures& server);

}  // namespace weir::admin
