// From a question to an answer: everything the admin page says, without the sockets it says it through.
#pragma once

#include "admin/token.hpp"

#include "weir/admin/sources.hpp"

#include <string>
#include <string_view>

namespace weir::admin {

struct Question {
  std::string_view method;
  std::string_view target;         // as it came
  std::string_view authorization;  // the field's value; empty: absent
};

struct Answer {
  unsigned status = 200;
  std::string body = {};
  std::string_view content_type = "application/json";
  std::string_view allow = {};  // of a 405, the methods that would do
  bool challenge = false;       // of a 401: names the scheme
};

[[nodiscard]] Answer answer(const Sources& sources, const Token& token, const Question& question);

// An error in the shape of all of weir's: {"error": CODE, "message": …}.
[[nodiscard]] Answer error_answer(unsigned status, std::string_view code, std::string_view message);

// The parts that have a file of their own.
[[nodiscard]] std::string metrics_text(const Sources& sources);  // Prometheus text exposition format 0.0.4
[[nodiscard]] std::string rules_json(const Sources& sources);

}  // namespace weir::admin
