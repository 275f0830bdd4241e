// Reads the JSON of POST /v1/decide and POST /v1/settle. docs/ask.md lists the members. Pure.
#pragma once

#include "weir/ask/question.hpp"
#include "weir/ask/settle_request.hpp"
#include "weir/base/result.hpp"

#include <string_view>
#include <vector>

namespace weir::ask {

struct QuestionList {
  std::vector<Question> questions;
  bool is_batch = false;  // true: the text is an array, so the answer must be an array
};

// Reads a question, or an array of 1 to kMostQuestions questions. An error names the wrong member and says
// what to write.
[[nodiscard]] base::Result<QuestionList> read_questions(std::string_view text);

// Reads a settlement. An error names the wrong member and says what to write.
[[nodiscard]] base::Result<SettleRequest> read_settle_request(std::string_view text);

}  // namespace weir::ask
