// Formats the admin listener's JSON replies as text for people. Pure.
#pragma once

#include <string>

#include <boost/json/fwd.hpp>

namespace weir::cli {

// Returns the text for a reply of POST /api/explain. The text shows the client, the destination, a line for
// each rule, and the verdict. Throws boost::system::system_error if the reply lacks a part that weir sends.
[[nodiscard]] std::string explanation_report(const boost::json::object& reply_json);
// Returns the text for a reply of /api/keys. Throws the same exceptions as explanation_report().
[[nodiscard]] std::string keys_report(const boost::json::object& reply_json);
// Returns the text for a reply of /api/client-keys, one line for each key and each warning. Throws the same
// exceptions as explanation_report().
[[nodiscard]] std::string client_keys_report(const boost::json::object& reply_json);

// Returns the table for a reply of /api/servers. Throws the same exceptions as explanation_report().
[[nodiscard]] std::string servers_report(const boost::json::object& reply_json);

}  // namespace weir::cli
