// What is asked of the admin listener, and what it says, as values: all but the sockets and the octets.
#pragma once

#include "weir/admin/sources.hpp"

#include <string>
#include <string_view>

namespace weir::admin {

// Views into the request, which lives until its answer has been sent.
struct Question {
  std::string_view method;
  std::string_view target;              // as it came
  std::string_view authorization = {};  // fields' values; empty: absent, here and below
  std::string_view host = {};
  std::string_view origin = {};
  std::string_view fetch_site = {};  // Sec-Fetch-Site
  std::string_view content_type = {};
  std::string_view if_none_match = {};
  bool has_body = false;       // one is announced
  std::string_view body = {};  // whole, once a page that takes one is asked
  std::string peer = {};       // who asks: "203.0.113.7:50000"; "unix" at a unix socket
  bool has_token = true;       // brings the token, or none is set
  bool is_operators = true;    // and no stranger's page can have sent it: it may be told what operators are
};

// The part of its target before '?', and behind it.
[[nodiscard]] std::string_view path_of(const Question& question) noexcept;
[[nodiscard]] std::string_view query_of(const Question& question) noexcept;

struct Answer {
  unsigned status = 200;
  std::string body = {};
  std::string_view content_type = "application/json";
  std::string allow = {};      // of a 405, the methods that would do
  bool challenge = false;      // of a 401: names the scheme
  std::string_view etag = {};  // in its quotes. With one it may be kept, and asked for anew; else never
};

// An error in the shape of all of weir's: {"error": CODE, "message": …}.
[[nodiscard]] Answer error_answer(unsigned status, std::string_view code, std::string_view message);

// 304 in place of an answer whose etag the question names.
[[nodiscard]] Answer unless_known(Answer answer, const Question& question);

// The parts that have a file of their own.
[[nodiscard]] std::string metrics_text(const Sources& sources);  // Prometheus text exposition format 0.0.4
[[nodiscard]] std::string rules_json(const Sources& sources);
[[nodiscard]] std::string overview_json(const Sources& sources);  // what the dashboard shows now
[[nodiscard]] std::string history_json(const Sources& sources);   // and what it shows of the last minutes

}  // namespace weir::admin
