// Reads the admin listener's replies to commands. Each reply is one JSON object, whatever its status.
#pragma once

#include "cli/ask_admin.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

namespace weir::cli {

// Returns the JSON object of the reply. Throws std::runtime_error if the reply is no JSON object.
[[nodiscard]] boost::json::object object_in(const AdminReply& reply);
// Returns the error message in the reply; the whole body if the reply has no message.
[[nodiscard]] std::string message_in(const boost::json::object& reply_json, const AdminReply& reply);
// Returns the strings in the list `name`; an empty list if `name` is missing or is not a list of strings.
[[nodiscard]] std::vector<std::string> texts_in(const boost::json::object& reply_json, std::string_view name);

// Returns why the admin listener answered 401, and what to write. `token`: the token of the request; may be
// empty.
[[nodiscard]] std::string why_unauthorized(std::string_view token);

}  // namespace weir::cli
