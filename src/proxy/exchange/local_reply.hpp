// The answers that weir gives itself: refusals, errors, configured responses.
//
// An answer is sent at once: what is still to come of the request's body is no reason to wait. So these are
// plain functions, and the task that they return has nearly always ended already.
#pragma once

#include "proxy/exchange/exchange_context.hpp"
#include "proxy/exchange/pre_check.hpp"

#include "weir/http/answer.hpp"
#include "weir/net/task.hpp"

#include <string_view>

namespace weir::proxy {

class LocalReply {
 public:
  // `context` outlives it.
  explicit LocalReply(ExchangeContext& context) noexcept : context_(context) {}

  // Answers a request that no limit is asked about. REQUIRES barrier != None.
  [[nodiscard]] net::Task<Ending> reject_early(PreCheck pre_check);
  // Refuses the request as the ruling says, with an objection, a store that is away, or the rule's refusal.
  [[nodiscard]] net::Task<Ending> refuse(const AdmissionResult& admission_result);
  // Refuses it by a rule that had admitted it to the queue.
  [[nodiscard]] net::Task<Ending> refuse_waiting(const AdmissionController::Delayed& delayed,
                                                 base::Duration retry_after);
  // 503: more requests are under way than the server takes.
  [[nodiscard]] net::Task<Ending> shed(policy::Priority priority);
  // 503: it waited, and others took its place in the queue.
  [[nodiscard]] net::Task<Ending> reject_displaced(policy::Priority priority, base::Duration retry_after);
  // 429: the upstream told everybody to stay away for so long.
  [[nodiscard]] net::Task<Ending> answer_paused(base::Duration wait);

  // Answers what the route is configured to; 404 if `route` is null.
  [[nodiscard]] net::Task<Ending> respond(const policy::Route* route);
  // Answers a request that may not be forwarded any more (RFC 9110 §7.6.2).
  [[nodiscard]] net::Task<Ending> answer_max_forwards();

  [[nodiscard]] net::Task<Ending> error(LocalError error);
  // Likewise where the body is not read to its end: the connection ends.
  [[nodiscard]] net::Task<Ending> error_unread(LocalError error);

 private:
  [[nodiscard]] net::Task<Ending> answer(http::Answer answer);
  [[nodiscard]] net::Task<Ending> object(const policy::Objection& objection);
  void note_token_fault(policy::TokenFault fault);
  [[nodiscard]] net::Task<Ending> refuse_by(const policy::Rule& rule, base::Duration retry_after);
  [[nodiscard]] net::Task<Ending> send(http::Answer answer);
  [[nodiscard]] net::Task<Ending> send_rest();
  [[nodiscard]] Ending answered_with(const net::ErrorCode& ec);

  ExchangeContext& context_;
};

}  // namespace weir::proxy
