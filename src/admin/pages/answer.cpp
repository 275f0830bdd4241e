#include "admin/pages/answer.hpp"

#include "weir/observe/json_text.hpp"

#include <algorithm>

namespace weir::admin {

std::string_view path_of(const PageRequest& question) noexcept {
  return question.target.substr(0, question.target.find('?'));
}

std::string_view query_of(const PageRequest& question) noexcept {
  return question.target.substr(std::min(path_of(question).size() + 1, question.target.size()));
}

Answer error_answer(unsigned status, std::string_view code, std::string_view message) {
  Answer answer{.status = status, .body = R"({"error":)"};
  observe::append_json_text(answer.body, code);
  answer.body += R"(,"message":)";
  observe::append_json_text(answer.body, message);
  answer.body += '}';
  return answer;
}

// Compares ETags weakly (RFC 9110 §13.1.2), so a prefix W/ does not matter.
Answer unless_known(Answer answer, const PageRequest& question) {
  if (answer.etag.empty() || question.if_none_match.find(answer.etag) == std::string_view::npos)
    return answer;
  answer.status = 304;
  answer.body.clear();
  return answer;
}

}  // namespace weir::admin
