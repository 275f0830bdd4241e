#include "proxy/exchange/exchange_context.hpp"

#include "proxy/admission/rate_limit_headers.hpp"

#include "weir/ask/question.hpp"
#include "weir/policy/claims.hpp"

namespace weir::proxy {

namespace {

bool is_field(const http::Field& field, std::string_view name) noexcept {
  return field.id == http::FieldId::Other && http::equal_ignoring_case(field.name, name);
}

}  // namespace

ExchangeContext::ExchangeContext(ClientStream& a_client)
    : buffers_loan_(a_client.worker.take_buffers()),
      client(a_client),
      watch(a_client.watch),
      question(a_client.question()),
      worker(a_client.worker),
      snapshot(a_client.worker.worker_snapshots),
      config(snapshot.config()),
      buffers(*buffers_loan_),
      admission(worker, config, buffers) {
  if (question != nullptr) admission.expect_settlement();
}

void ExchangeContext::identify() {
  const auto& peer = client.peer;
  buffers.head.bounds = config.client.bounds;
  read_clock();
  report.started = now;
  report.machine_started = net::Clock::machine_now();
  report.is_question = question != nullptr;
  buffers.credentials.now = report.started;
  buffers.credentials.machine_now = report.machine_started;
  buffers.credentials.keys_current = false;
  buffers.credentials.certificate_subject = peer.details().certificate_subject;
  if (config.certificates) buffers.credentials.certificate = client.certificate();
  buffers.request =
      policy::request_of(config.client, peer.address, buffers.head, buffers.credentials, buffers.texts);
  if (config.elastic) buffers.request.load = worker.load.load();
  buffers.request.factors = config.factors;
  buffers.request.address_digest = &peer.address_digest;
  describe_connection();
  buffers.rules = config.rule_finder.find(config.rules, buffers.request, buffers.found_rules);
  if (config.tracing) join_trace();
}

// Fills in the parts of the request that are not in its head: those of the client's connection and, for a
// question, the domain, the descriptors and the cost.
void ExchangeContext::describe_connection() {
  auto& request = buffers.request;
  request.secure = client.is_secure();
  // most listeners have no name, and clear() costs less than an assignment
  if (const auto name = client.listener_name(); name.empty())
    buffers.texts.listener.clear();
  else
    buffers.texts.listener = name;
  request.listener = buffers.texts.listener;
  if (question == nullptr) return;
  request.domain = question->domain;
  request.descriptors = question->descriptors;
  request.stated_cost = question->cost;
}

void ExchangeContext::name_request() {
  if (!buffers.request_id.empty()) return;
  const auto* client_id = buffers.request.client.peer_trusted
                              ? http::find_field(buffers.head.fields, http::FieldId::XRequestId)
                              : nullptr;
  if (client_id != nullptr && !client_id->hop_by_hop && !client_id->value.empty())
    buffers.request_id = client_id->value;
  else
    worker.make_request_id(buffers.request_id);
}

void ExchangeContext::join_trace() {
  const http::Field* parent = nullptr;
  std::size_t count = 0;
  for (const auto& field : buffers.head.fields)
    if (is_field(field, "traceparent")) {
      parent = &field;
      ++count;
    }
  // a request with several traceparent fields begins a new trace, like a request without one
  const bool follows = count == 1 && buffers.request.client.peer_trusted;
  buffers.trace = worker.join_trace(follows ? parent->value : std::string_view(), *config.tracing);
}

void ExchangeContext::pass_trace_on() {
  for (auto& field : buffers.head.fields)
    if (is_field(field, "traceparent") || (!buffers.trace->has_parent && is_field(field, "tracestate")))
      field.hop_by_hop = true;
  observe::append_traceparent(buffers.forwarded_fields, *buffers.trace);
}

void ExchangeContext::edit_answer(http::Fields& fields) {
  const auto& edits = route()->edits;
  if (!edits) return;
  policy::drop_fields(edits->response, fields);
  policy::append_lines(edits->response, template_values(), buffers.rate_limit_headers);
}

void ExchangeContext::edit_own_answer(std::string& lines) {
  policy::edit_own_lines(route()->edits->response, template_values(), lines);
}

void ExchangeContext::verify_token() {
  if (const auto fault = policy::verify_token(buffers.request.client, buffers.credentials))
    worker.counters.token_faults(*fault).add();
}

void ExchangeContext::note_rate_limit_headers(const policy::Decision& decision) {
  buffers.rate_limit_headers.clear();
  if (decision.rule == nullptr) return;
  append_rate_limit_headers(buffers.rate_limit_headers, decision, config.server,
                            admission.reset_at(decision));
}

void ExchangeContext::append_retry_after(base::Duration wait) {
  const http::Jitter jitter{config.server.retry_after_jitter, worker.chance()};
  http::append_retry_after(buffers.rate_limit_headers, http::retry_after_seconds(wait, jitter).value_or(1));
}

void ExchangeContext::settle(unsigned status, const http::ResponseHead* head) {
  auto& settlements = admission.settlements();
  settlements.watch_request(client.body());
  if (settlements.due() && settlements.answered(status, head, now))
    note_rate_limit_headers(admission.current_decision());
}

void ExchangeContext::refund() {
  admission.refund();
  // Removes the rate-limit fields, because they describe a charge that was just refunded. The fields of a
  // concurrency limit are still correct, because permits remain held until the exchange ends.
  const auto* limiter = report.decision.limiter;
  if (limiter != nullptr && !limit::holds(*limiter)) buffers.rate_limit_headers.clear();
}

net::Task<bool> ExchangeContext::send_continue() {
  watch.arm(config.server.write_timeout);
  const auto ec = co_await client.send_continue();
  co_return !ec;
}

Ending ExchangeContext::give_up_writing(bool late) {
  using observe::ClientError;
  note_client_error(late ? ClientError::WriteTimeout : ClientError::Left,
                    late ? "write_timeout" : "client_left");
  return Ending::Abort;
}

}  // namespace weir::proxy
