#include "proxy/ask/forward_auth.hpp"

#include "weir/ask/forwarded_question.hpp"

#include <utility>

namespace weir::proxy {

namespace {

// Returns the status of the answer to the asking proxy. `refusal_status`: the status for refusals; 0: each
// refusal has its own status. A 401 always remains a 401, which each asking proxy passes on to its client.
unsigned status_to_proxy(const ask::Answer& answer, unsigned refusal_status) noexcept {
  if (answer.allowed) return 200;
  return refusal_status != 0 && answer.status != 401 ? refusal_status : answer.status;
}

net::Task<Ending> answer_proxy(AskCall& call, ask::Answer answer, unsigned refusal_status) {
  const auto status = status_to_proxy(answer, refusal_status);
  if (!answer.error.empty()) co_return co_await call.error(status, answer.error);
  http::Answer reply{.status = status, .body = answer.body, .fields = answer.fields};
  if (!answer.content_type.empty()) reply.content_type = answer.content_type;
  co_return co_await call.answer(reply);
}

}  // namespace

net::Task<Ending> serve_forward_auth(AskCall& call) {
  const auto& head = call.buffers.head;
  const auto refusal_status = ask::refusal_status(head.query);
  auto question = ask::forwarded_question(head, call.authorization_is_token);
  if (!question || !refusal_status) {
    call.worker.counters.ask.questions(observe::AskApi::ForwardAuth, observe::AskResult::Error).add();
    const auto& error = question ? refusal_status.error() : question.error();
    co_return co_await call.error(400, error.message);
  }
  auto decision = call.decide(std::move(*question), observe::AskApi::ForwardAuth);
  auto answer = co_await decision;
  if (answer.status == 0) co_return Ending::Close;
  co_return co_await answer_proxy(call, std::move(answer), *refusal_status);
}

}  // namespace weir::proxy
