// Converts between Beast's messages and the pages' requests and responses.
#pragma once

#include "admin/pages/admission.hpp"
#include "admin/pages/answer.hpp"

#include "weir/net/asio.hpp"

#include <optional>

#include <boost/beast/http.hpp>

namespace weir::admin {

using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
using Response = boost::beast::http::response<boost::beast::http::string_body>;

// `request`: the request of this response; null: the connection ends after it.
[[nodiscard]] Response to_response(Answer answer, const Parser* request);
// Returns views into the parser. REQUIRES a complete head.
[[nodiscard]] PageRequest question_of(const Parser& parser, const net::Socket& socket);

// Returns the response to bytes that are no request; nullopt if the client is gone.
[[nodiscard]] std::optional<Answer> fault_answer(const net::ErrorCode& ec);
// Returns the response to a faulty body. `late`: the body took too long.
[[nodiscard]] std::optional<Answer> fault_of_body(const net::ErrorCode& ec, bool late);
// Rejects several Host fields (RFC 9112 §3.2), because a proxy in between may use another one.
[[nodiscard]] std::optional<Answer> fault_of_host(const Parser& parser);

}  // namespace weir::admin
