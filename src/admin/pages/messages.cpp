#include "admin/pages/messages.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/net/listener.hpp"

#include <string_view>
#include <utility>

namespace weir::admin {

namespace {

namespace http = boost::beast::http;
using net::ErrorCode;

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

bool announces_body(const Parser& parser) {
  return parser.chunked() || parser.content_length().value_or(0) > 0;
}

// Returns the client's address, such as "203.0.113.7:50000"; "unix" for a client of a unix socket.
std::string peer_of(const net::Socket& socket) {
  ErrorCode ec;
  const auto peer = socket.remote_endpoint(ec);
  if (ec || net::peer_port(peer) == 0) return "unix";
  return base::Endpoint{net::peer_address(peer).to_string(), net::peer_port(peer), {}}.to_string();
}

Answer too_large() {
  return error_answer(413, "body_too_large", "The body is longer than 64 KiB.");
}

}  // namespace

Response to_response(Answer answer, const Parser* request) {
  Response response(static_cast<http::status>(answer.status), 11);
  const auto set = [&](auto field, std::string_view value) {
    response.set(field, boost::beast::string_view(value.data(), value.size()));
  };
  for (const auto& [name, value] : kGuardingFields) set(boost::beast::string_view(name), value);
  set(http::field::content_type, answer.content_type);
  set(http::field::cache_control, answer.etag.empty() ? "no-store" : "no-cache");
  if (!answer.etag.empty()) set(http::field::etag, answer.etag);
  if (!answer.allow.empty()) set(http::field::allow, answer.allow);
  if (answer.challenge) set(http::field::www_authenticate, "Bearer realm=\"weir admin\"");
  response.keep_alive(request != nullptr && request->get().keep_alive());
  if (answer.status != 304) response.content_length(answer.body.size());
  if (request == nullptr || request->get().method() != http::verb::head)
    response.body() = std::move(answer.body);
  return response;
}

PageRequest question_of(const Parser& parser, const net::Socket& socket) {
  const auto& request = parser.get();
  const auto field = [&](auto name) { return view(request[name]); };
  return {.method = view(request.method_string()),
          .target = view(request.target()),
          .authorization = field(http::field::authorization),
          .host = field(http::field::host),
          .origin = field(http::field::origin),
          .fetch_site = field("Sec-Fetch-Site"),
          .content_type = field(http::field::content_type),
          .if_none_match = field(http::field::if_none_match),
          .has_body = announces_body(parser),
          .peer = peer_of(socket)};
}

std::optional<Answer> fault_answer(const ErrorCode& ec) {
  if (ec == http::error::header_limit)
    return error_answer(431, "head_too_large", "The request head is longer than 8 KiB.");
  if (ec == http::error::body_limit) return too_large();
  if (ec == http::error::end_of_stream || ec == http::error::partial_message) return std::nullopt;
  if (ec.category() != make_error_code(http::error::bad_method).category()) return std::nullopt;
  return error_answer(400, "bad_request", "This is not an HTTP/1.1 request.");
}

std::optional<Answer> fault_of_body(const ErrorCode& ec, bool late) {
  if (!ec) return std::nullopt;
  if (late) return error_answer(408, "request_timeout", "The request body did not arrive in time.");
  if (ec == http::error::body_limit) return too_large();
  return error_answer(400, "bad_request", "The request body is incomplete.");
}

std::optional<Answer> fault_of_host(const Parser& parser) {
  const auto& request = parser.get();
  const auto hosts = request.count(http::field::host);
  if (hosts == 1 || (hosts == 0 && request.version() < 11)) return std::nullopt;
  return error_answer(400, "bad_host", "The request must have exactly one Host header.");
}

}  // namespace weir::admin
