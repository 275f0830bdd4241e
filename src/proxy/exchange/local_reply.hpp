// Sends the answers that weir creates itself: refusals, errors and configured responses. Exchange owns the
// object.
//
// Does not wait for the rest of the request's body. Most functions are therefore not coroutines, and the
// returned task has nearly always ended already.
#pragma once

#include "proxy/exchange/exchange_context.hpp"
#include "proxy/exchange/pre_check.hpp"
#include "proxy/exchange/usage.hpp"

#include "weir/http/answer.hpp"
#include "weir/net/task.hpp"

#include <string_view>

namespace weir::proxy {

class LocalReply {
 public:
  // `context` must outlive this object.
  explicit LocalReply(ExchangeContext& context) noexcept : context_(context) {}

  // Answers a request that is rejected before any limit is checked. REQUIRES pre_check != None.
  [[nodiscard]] net::Task<Ending> reject_early(PreCheck pre_check);
  // Refuses the request for the reason in `admission_result`: a rejection, an unreachable store, or the
  // limit of a rule.
  [[nodiscard]] net::Task<Ending> refuse(const AdmissionResult& admission_result);
  // Refuses a request after it has waited in the queue of a rule without success.
  [[nodiscard]] net::Task<Ending> refuse_waiting(const AdmissionController::Delayed& delayed,
                                                 base::Duration retry_after);
  // Answers 503: too many requests are in flight.
  [[nodiscard]] net::Task<Ending> shed(policy::Priority priority);
  // Answers 503: other requests took this request's place in the queue.
  [[nodiscard]] net::Task<Ending> reject_displaced(policy::Priority priority, base::Duration retry_after);
  // Answers 429: the upstream asked all clients to stop sending for `wait`.
  [[nodiscard]] net::Task<Ending> answer_paused(base::Duration wait);

  // Sends the route's configured response, or 404 if `route` is null.
  [[nodiscard]] net::Task<Ending> respond(const policy::Route* route);
  // Answers a CORS preflight. REQUIRES that the configuration has [cors].
  [[nodiscard]] net::Task<Ending> answer_preflight();
  // Answers the check of a certificate authority (RFC 8555 §8.3). `buffers.text` already has the answer.
  [[nodiscard]] net::Task<Ending> answer_challenge();
  // Sends the state of the client's own limits, which `usage` has already read.
  [[nodiscard]] net::Task<Ending> show(const Usage& usage);
  // Answers a request whose Max-Forwards is used up (RFC 9110 §7.6.2).
  [[nodiscard]] net::Task<Ending> answer_max_forwards();

  [[nodiscard]] net::Task<Ending> error(LocalError error);
  // Sends an error without reading the rest of the body, and closes the connection.
  [[nodiscard]] net::Task<Ending> error_unread(LocalError error);

 private:
  [[nodiscard]] net::Task<Ending> answer(http::Answer answer);
  [[nodiscard]] net::Task<Ending> object(const policy::Rejection& rejection);
  void note_token_fault(policy::TokenFault fault);
  [[nodiscard]] net::Task<Ending> refuse_by(const policy::Rule& rule, base::Duration retry_after);
  [[nodiscard]] bool add_configured_fields(const policy::CannedResponse& respond);
  void add_route_fields(http::Answer& answer);
  void add_cors_fields(http::Answer& answer);
  [[nodiscard]] net::Task<Ending> send(http::Answer answer);
  [[nodiscard]] net::Task<Ending> send_rest();
  [[nodiscard]] Ending answered_with(const net::ErrorCode& ec);

  ExchangeContext& context_;
};

}  // namespace weir::proxy
