#include "proxy/exchange/local_reply.hpp"

#include "proxy/admission/rate_limit_headers.hpp"

#include "weir/http/forwarding.hpp"
#include "weir/http/grpc.hpp"
#include "weir/policy/claims.hpp"

namespace weir::proxy {

namespace {

// Values of the field `failure` in the access log. "ambiguous_path" means that servers may read the request's
// path in several ways.
constexpr std::string_view kTooManyParameters = "too_many_parameters";
constexpr std::string_view kAmbiguousPath = "ambiguous_path";

}  // namespace

net::Task<Ending> LocalReply::reject_early(PreCheck pre_check) {
  using observe::ClientError;
  auto& counters = context_.worker.counters;
  if (pre_check == PreCheck::HeadTooLarge) counters.client_errors(ClientError::HeadTooLarge).add();
  if (pre_check == PreCheck::BodyTooLarge) counters.client_errors(ClientError::BodyTooLarge).add();
  if (pre_check == PreCheck::Excess) context_.note_client_error(ClientError::Excess, kTooManyParameters);
  if (pre_check == PreCheck::PathAmbiguous || pre_check == PreCheck::PathLeaves)
    context_.note_client_error(ClientError::BadHead, kAmbiguousPath);
  if (pre_check == PreCheck::Ambiguous)
    context_.note_client_error(ClientError::BadHead, "ambiguous_credential");
  if (pre_check == PreCheck::Excess) return error({400, policy::describe(context_.buffers.head.excess())});
  const auto reply = answer_to(pre_check, context_.buffers.request);
  return error({reply.status, reply.what});
}

net::Task<Ending> LocalReply::refuse(const AdmissionResult& admission_result) {
  if (admission_result.rejection) return object(admission_result.rejection);
  if (admission_result.closed != nullptr) {
    context_.report.failure = "store_closed";
    return error({503, "the limiter's store cannot be reached; please retry"});
  }
  return refuse_by(*admission_result.decision.rule, admission_result.decision.outcome.retry_after);
}

net::Task<Ending> LocalReply::object(const policy::Rejection& rejection) {
  using observe::ClientError;
  auto& buffers = context_.buffers;
  if (rejection.excess) context_.note_client_error(ClientError::Excess, kTooManyParameters);
  if (policy::is_about_path(rejection)) context_.note_client_error(ClientError::BadHead, kAmbiguousPath);
  if (rejection.token) note_token_fault(*rejection.token);
  if (rejection.too_many_rules) context_.worker.counters.rules_exceeded.add();
  buffers.text.clear();
  append_rejection(buffers.rate_limit_headers, buffers.text, rejection, context_.config.client);
  if (rejection.token == policy::TokenFault::Unavailable)
    context_.append_retry_after(context_.config.client.tokens->cooldown());
  return answer(
      {.status = policy::status_of(rejection), .body = buffers.text, .fields = buffers.rate_limit_headers});
}

// Counts the fault, unless the verification of the token has already counted it.
void LocalReply::note_token_fault(policy::TokenFault fault) {
  context_.report.failure = policy::error_of(fault);
  if (!context_.buffers.request.client.token_fault) context_.worker.counters.token_faults(fault).add();
}

net::Task<Ending> LocalReply::refuse_by(const policy::Rule& rule, base::Duration retry_after) {
  auto& buffers = context_.buffers;
  buffers.text.clear();
  const auto seconds =
      http::retry_after_seconds(retry_after, {rule.retry_after_jitter, context_.worker.chance()});
  return answer(make_refusal(buffers.rate_limit_headers, buffers.text, rule, seconds, buffers.head.fields));
}

net::Task<Ending> LocalReply::refuse_waiting(const AdmissionController::Delayed& delayed,
                                             base::Duration retry_after) {
  auto& decision = context_.report.decision;
  refuse_wait(decision, *delayed.rule, *delayed.departure.charge.limiter, retry_after, context_.now);
  context_.note_rate_limit_headers(decision);
  return refuse_by(*delayed.rule, decision.outcome.retry_after);
}

net::Task<Ending> LocalReply::shed(policy::Priority priority) {
  context_.worker.counters.shed[priority].add();
  context_.report.failure = "shed";
  context_.buffers.rate_limit_headers =
      "Retry-After: 1\r\n";  // a guess, because weir cannot know when other requests end
  return error({503, "more requests are under way than this server takes; please retry"});
}

// Answers 503 instead of 429. Every limit had admitted the request, but then requests of higher priority took
// its place in the queue. Retry-After says when the limiter can admit a request of this cost.
net::Task<Ending> LocalReply::reject_displaced(policy::Priority priority, base::Duration retry_after) {
  auto& rate_limit_headers = context_.buffers.rate_limit_headers;
  context_.worker.counters.shed[priority].add();
  context_.worker.counters.queue_displaced.add();
  context_.report.failure = "queue_displaced";
  rate_limit_headers.clear();
  context_.append_retry_after(retry_after);
  return error({503, "others go first, and no turn is left in the queue; please retry"});
}

net::Task<Ending> LocalReply::answer_paused(base::Duration wait) {
  context_.tallies().paused.add();
  context_.report.failure = "upstream_paused";
  context_.refund();
  context_.append_retry_after(wait);
  return error({429, "the upstream has too many requests; please retry later"});
}

net::Task<Ending> LocalReply::respond(const policy::Route* route) {
  context_.settle(route != nullptr ? route->respond->status : 404, nullptr);
  if (route == nullptr) return error({404, "no route matches this request"});
  if (policy::uses_token(*route)) context_.verify_token();
  if (!add_configured_fields(*route->respond)) return error({400, policy::kNoHostToRedirectTo});
  return answer({.status = route->respond->status,
                 .content_type = route->respond->content_type,
                 .body = route->respond->body,
                 .fields = context_.buffers.rate_limit_headers,
                 .no_store = false});
}

// Appends the fields of a configured response to the answer's fields. Returns false if the response is a
// redirect to the host of the request, and the request names no host.
bool LocalReply::add_configured_fields(const policy::CannedResponse& respond) {
  if (!respond.location && respond.fields.empty()) return true;
  context_.name_request();
  return policy::append_fields(respond, context_.template_values(), context_.buffers.rate_limit_headers);
}

net::Task<Ending> LocalReply::answer_preflight() {
  auto& fields = context_.buffers.rate_limit_headers;
  http::append_preflight_fields(fields, *context_.config.cors, context_.buffers.head);
  return answer({.status = 204, .fields = fields, .no_store = false});
}

net::Task<Ending> LocalReply::answer_challenge() {
  return answer({.status = 200,
                 .content_type = "application/octet-stream",
                 .body = context_.buffers.text,
                 .fields = context_.buffers.rate_limit_headers});
}

net::Task<Ending> LocalReply::show(const Usage& usage) {
  auto& buffers = context_.buffers;
  if (policy::uses_token(*context_.route())) context_.verify_token();
  buffers.text.clear();
  usage.write(buffers.text);
  return answer({.status = 200, .body = buffers.text, .fields = buffers.rate_limit_headers});
}

net::Task<Ending> LocalReply::answer_max_forwards() {
  const auto reply = max_forwards_answer(context_.buffers.head);
  context_.settle(reply.status, nullptr);
  if (!reply.what.empty()) return error({reply.status, reply.what});
  return answer({.status = reply.status, .fields = context_.buffers.rate_limit_headers, .no_store = false});
}

net::Task<Ending> LocalReply::error(LocalError error) {
  auto& buffers = context_.buffers;
  buffers.text.clear();
  append_error(buffers.rate_limit_headers, buffers.text, error.status, error.what, context_.config.client);
  return answer({.status = error.status, .body = buffers.text, .fields = buffers.rate_limit_headers});
}

net::Task<Ending> LocalReply::error_unread(LocalError error) {
  auto& text = context_.buffers.text;
  text.clear();
  http::append_error_json(text, error.status, error.what);
  return send({.status = error.status, .body = text, .keep_alive = false});
}

// Sends the answer. If weir has sent only a part of the request's body to a server, also closes the client's
// connection, because weir does not read the rest of the body.
net::Task<Ending> LocalReply::answer(http::Answer answer) {
  answer.keep_alive = !context_.upload_begun || context_.client.body().complete();
  return send(answer);
}

// Adds the fields that the route gives to its answers.
void LocalReply::add_route_fields(http::Answer& answer) {
  auto& fields = context_.buffers.rate_limit_headers;
  if (answer.fields.empty()) fields.clear();
  context_.edit_own_answer(fields);
  answer.fields = fields;
}

// Adds the CORS fields with which pages of other origins may read the answer, as [cors] permits.
void LocalReply::add_cors_fields(http::Answer& answer) {
  auto& fields = context_.buffers.rate_limit_headers;
  if (answer.fields.empty()) fields.clear();
  http::append_cors_fields(fields, *context_.config.cors, context_.buffers.head.fields);
  answer.fields = fields;
}

net::Task<Ending> LocalReply::send(http::Answer answer) {
  auto& client = context_.client;
  if (!client.can_answer())
    return net::Task<Ending>::ended(context_.give_up_writing(!context_.watch.has_disconnected()));
  auto& buffers = context_.buffers;
  context_.name_request();
  answer.omit_body = buffers.head.method == "HEAD";
  answer.date = context_.date();
  answer.request_id = buffers.request_id;
  context_.report.status = answer.status;
  if (!context_.report.is_question && http::is_grpc(buffers.head.fields)) {
    buffers.rate_limit_headers.resize(answer.fields.empty() ? 0 : buffers.rate_limit_headers.size());
    http::make_trailers_only(answer, buffers.rate_limit_headers);
  }
  if (const auto* route = context_.route(); route != nullptr && route->edits) add_route_fields(answer);
  if (context_.config.cors) add_cors_fields(answer);
  if (!answer.omit_body) context_.report.body_out = answer.body.size();
  const auto sent = client.try_answer(answer);
  return sent ? net::Task<Ending>::ended(answered_with(*sent)) : send_rest();
}

net::Task<Ending> LocalReply::send_rest() {
  context_.watch.arm(context_.config.server.write_timeout);
  const auto ec = co_await context_.client.finish_answer();
  context_.read_clock();
  co_return answered_with(ec);
}

Ending LocalReply::answered_with(const net::ErrorCode& ec) {
  return ec ? context_.give_up_writing(context_.watch.late()) : Ending::Answered;
}

}  // namespace weir::proxy
