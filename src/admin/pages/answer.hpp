// The admin listener's requests and responses as plain values, without sockets.
#pragma once

#include "weir/admin/sources.hpp"

#include <string>
#include <string_view>

namespace weir::admin {

// A request. Its members point into the received request, which lives until the response has been sent.
struct PageRequest {
  std::string_view method;
  std::string_view target;  // the request target as received
  // This member and the following ones up to if_none_match are values of header fields. A member is empty if
  // the request lacks the field.
  std::string_view authorization = {};
  std::string_view host = {};
  std::string_view origin = {};
  std::string_view fetch_site = {};  // value of the field Sec-Fetch-Site
  std::string_view content_type = {};
  std::string_view if_none_match = {};
  bool has_body = false;       // true: the head announces a body
  std::string_view body = {};  // the whole body, if the page accepts a body
  // Address of the client, such as "203.0.113.7:50000", or "unix" if the client uses a unix socket.
  std::string peer = {};
  bool has_token = true;  // true: the request has the right token, or no token is configured
  // True: the request may read data for operators (fault_of_asker() in admission.hpp).
  bool is_operators = true;
};

// path_of() returns the part of the target before the first '?', and query_of() the part after it.
[[nodiscard]] std::string_view path_of(const PageRequest& question) noexcept;
[[nodiscard]] std::string_view query_of(const PageRequest& question) noexcept;

struct Answer {
  unsigned status = 200;
  std::string body = {};
  std::string_view content_type = "application/json";
  std::string allow = {};  // for status 405: the methods that the page accepts
  bool challenge = false;  // true: the response has the field WWW-Authenticate, for status 401
  // ETag with its quotes. If set, browsers may cache the response and revalidate it. Empty: no caching.
  std::string_view etag = {};
};

// Returns an error response. Its body has the form of all errors of weir: {"error": CODE, "message": …}.
[[nodiscard]] Answer error_answer(unsigned status, std::string_view code, std::string_view message);

// Returns 304 if the browser already has this version of the answer (If-None-Match); otherwise returns the
// answer.
[[nodiscard]] Answer unless_known(Answer answer, const PageRequest& question);

// Functions that return the bodies of pages. Each is defined in a source file of its own.
[[nodiscard]] std::string metrics_text(const Sources& sources);  // Prometheus text exposition format 0.0.4
[[nodiscard]] std::string rules_json(const Sources& sources);
[[nodiscard]] std::string overview_json(const Sources& sources);  // the present data for the dashboard
[[nodiscard]] std::string history_json(const Sources& sources);   // the last minutes' data for the dashboard

}  // namespace weir::admin
