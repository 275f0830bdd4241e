// Fuzzes the bodies of POST /v1/decide and POST /v1/settle. Any text must be rejected with a sentence, or be
// read. The head of a question that was read must be rejected, or say what the question says.
#include "fuzz/input.hpp"

#include "weir/ask/question_json.hpp"
#include "weir/http/head_parser.hpp"

#include <string_view>

namespace weir::fuzz {
namespace {

void check(const ask::Question& question) {
  const auto text = ask::request_head(question);
  http::RequestHead head;
  if (!text || http::parse_request_head(*text, head)) return;
  require(head.method == question.method, "the head has the method of the question");
  require(head.target == question.target, "the head has the path of the question");
  const auto own = question.host.empty() ? 0U : 1U;
  require(head.fields.size() == question.headers.size() + own, "the head has no further fields");
}

void check(const ask::SettleRequest& request) {
  const int told = (request.cost ? 1 : 0) + (request.status ? 1 : 0) + (request.refund ? 1 : 0);
  require(told == 1, "a settlement says one thing");
  require(!request.permit.empty(), "a settlement names its permit");
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto list = ask::read_questions(text)) {
    fuzz::require(!list->questions.empty() && list->questions.size() <= ask::kMostQuestions,
                  "a call is bounded");
    for (const auto& question : list->questions) fuzz::check(question);
  } else {
    fuzz::require(!list.error().message.empty(), "a fault is a sentence");
  }
  if (const auto request = ask::read_settle_request(text))
    fuzz::check(*request);
  else
    fuzz::require(!request.error().message.empty(), "a fault is a sentence");
  return 0;
}
