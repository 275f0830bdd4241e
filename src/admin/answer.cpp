#include "admin/answer.hpp"

#include <algorithm>

#include <boost/json.hpp>

namespace weir::admin {

std::string_view path_of(const Question& question) noexcept {
  return question.target.substr(0, question.target.find('?'));
}

std::string_view query_of(const Question& question) noexcept {
  return question.target.substr(std::min(path_of(question).size() + 1, question.target.size()));
}

Answer error_answer(unsigned status, std::string_view code, std::string_view message) {
  return {.status = status,
          .body = boost::json::serialize(boost::json::object{{"error", code}, {"message", message}})};
}

// The comparison is the weak one (RFC 9110 §13.1.2): whatever stands before the quotes does not count.
Answer unless_known(Answer answer, const Question& question) {
  if (answer.etag.empty() || question.if_none_match.find(answer.etag) == std::string_view::npos)
    return answer;
  answer.status = 304;
  answer.body.clear();
  return answer;
}

}  // namespace weir::admin
