// Messages of the admin listener: Beast's, and what the pages read and say.
#pragma once

#include "admin/pages/admission.hpp"
#include "admin/pages/answer.hpp"

#include "weir/net/asio.hpp"

#include <optional>

#include <boost/beast/http.hpp>

namespace weir::admin {

using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
using Response = boost::beast::http::response<boost::beast::http::string_body>;

// `request`: what it answers; null: it is the connection's last.
[[nodiscard]] Response to_response(Answer answer, const Parser* request);
// REQUIRES that the head is there. Refers to the parser.
[[nodiscard]] Question question_of(const Parser& parser, const net::Socket& socket);

// What to say to bytes that are no request; nullopt when there is nobody left to say it to.
[[nodiscard]] std::optional<Answer> fault_answer(const net::ErrorCode& ec);
// The same of a body, which may be `late`.
[[nodiscard]] std::optional<Answer> fault_of_body(const net::ErrorCode& ec, bool late);
// RFC 9112 §3.2: whoever stands between may go by the other one of two.
[[nodiscard]] std::optional<Answer> fault_of_host(const Parser& parser);

}  // namespace weir::admin
