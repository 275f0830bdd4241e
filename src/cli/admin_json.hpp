// What the admin listener answers to commands: one JSON object, whatever the status.
#pragma once

#include "cli/ask_admin.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

namespace weir::app {

// Throws std::runtime_error where it is none.
[[nodiscard]] boost::json::object object_in(const AdminReply& reply);
// What an error says in words; the whole body where it says nothing.
[[nodiscard]] std::string message_in(const boost::json::object& said, const AdminReply& reply);
// The texts of a list; none where there is no such list.
[[nodiscard]] std::vector<std::string> texts_in(const boost::json::object& said, std::string_view name);

}  // namespace weir::app
