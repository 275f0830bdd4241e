// Reads the admin listener's replies to commands: one JSON object for every status.
#pragma once

#include "cli/ask_admin.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

namespace weir::cli {

// Returns the object. Throws std::runtime_error if the reply has none.
[[nodiscard]] boost::json::object object_in(const AdminReply& reply);
// Returns the error's message; the whole body if there is none.
[[nodiscard]] std::string message_in(const boost::json::object& said, const AdminReply& reply);
// Returns the texts of a list; an empty list if the name is missing or has another type.
[[nodiscard]] std::vector<std::string> texts_in(const boost::json::object& said, std::string_view name);

}  // namespace weir::cli
