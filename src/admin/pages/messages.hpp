// Converts between Beast's HTTP messages and the pages' requests and responses.
#pragma once

#include "admin/pages/admission.hpp"
#include "admin/pages/answer.hpp"

#include "weir/net/asio.hpp"

#include <optional>

#include <boost/beast/http.hpp>

namespace weir::admin {

using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
using Response = boost::beast::http::response<boost::beast::http::string_body>;

// Converts the page's answer to the HTTP response. `request`: the request that is answered. If `request` is
// null, the connection ends after the response.
[[nodiscard]] Response to_response(Answer answer, const Parser* request);
// Returns the request as views into the parser's data. REQUIRES that the parser has read a complete head.
[[nodiscard]] PageRequest question_of(const Parser& parser, const net::Socket& socket);

// Returns the error response for bytes that are not a valid request; nullopt if the client has closed the
// connection.
[[nodiscard]] std::optional<Answer> fault_answer(const net::ErrorCode& ec);
// Returns the error response for a request whose body cannot be read. `late` is true if reading the body took
// too long.
[[nodiscard]] std::optional<Answer> fault_of_body(const net::ErrorCode& ec, bool late);
// Returns an error response unless the request has exactly one Host field (RFC 9112 §3.2). A request of
// HTTP/1.0 may have none. If there were two Host fields, a proxy in between might use the other field.
[[nodiscard]] std::optional<Answer> fault_of_host(const Parser& parser);

}  // namespace weir::admin
