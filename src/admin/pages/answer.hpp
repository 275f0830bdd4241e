// Requests to the admin listener and its responses as values, without sockets.
#pragma once

#include "weir/admin/sources.hpp"

#include <string>
#include <string_view>

namespace weir::admin {

// Views into a request, which lives until its response has been sent.
struct PageRequest {
  std::string_view method;
  std::string_view target;              // as received
  std::string_view authorization = {};  // values of header fields; empty: absent, here and below
  std::string_view host = {};
  std::string_view origin = {};
  std::string_view fetch_site = {};  // Sec-Fetch-Site
  std::string_view content_type = {};
  std::string_view if_none_match = {};
  bool has_body = false;       // the head announces a body
  std::string_view body = {};  // complete, if the page takes a body
  std::string peer = {};       // address of the client: "203.0.113.7:50000"; "unix" at a unix socket
  bool has_token = true;       // has the token, or no token is set
  bool is_operators = true;    // may see data for operators: no stranger's page can have sent it
};

// Return the part of the target before '?', and the part behind it.
[[nodiscard]] std::string_view path_of(const PageRequest& question) noexcept;
[[nodiscard]] std::string_view query_of(const PageRequest& question) noexcept;

struct Answer {
  unsigned status = 200;
  std::string body = {};
  std::string_view content_type = "application/json";
  std::string allow = {};      // for 405: the methods that the page has
  bool challenge = false;      // for 401: adds WWW-Authenticate
  std::string_view etag = {};  // with its quotes; allows caching with revalidation. Empty: no caching
};

// Returns an error in the form of all of weir's errors: {"error": CODE, "message": …}.
[[nodiscard]] Answer error_answer(unsigned status, std::string_view code, std::string_view message);

// Returns 304 if the request has the answer's etag; otherwise the answer.
[[nodiscard]] Answer unless_known(Answer answer, const PageRequest& question);

// Return the texts of pages that have a file of their own.
[[nodiscard]] std::string metrics_text(const Sources& sources);  // Prometheus text exposition format 0.0.4
[[nodiscard]] std::string rules_json(const Sources& sources);
[[nodiscard]] std::string overview_json(const Sources& sources);  // the dashboard's present data
[[nodiscard]] std::string history_json(const Sources& sources);   // the dashboard's data of the last minutes

}  // namespace weir::admin
