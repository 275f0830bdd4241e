#include "proxy/exchange/exchange.hpp"

#include "proxy/exchange/access_report.hpp"
#include "proxy/exchange/body_inspector.hpp"
#include "proxy/exchange/pre_check.hpp"
#include "proxy/exchange/scoped_cancel_target.hpp"
#include "proxy/exchange/token_key_wait.hpp"
#include "proxy/pacing/pacing.hpp"
#include "proxy/queue/queue_wait.hpp"
#include "proxy/upstream/upstream_exchange.hpp"

#include "weir/policy/claims.hpp"
#include "weir/policy/explain_request.hpp"
#include "weir/policy/priority.hpp"
#include "weir/policy/usage.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace weir::proxy {

namespace {

// Returns true if the answer shows the client's own limits, and charges nothing. Returns false for a
// question, because weir decides about it as if the route forwarded the request.
bool shows_usage(const ExchangeContext& context) noexcept {
  const auto* route = context.route();
  return !context.report.is_question && route != nullptr && route->respond && route->respond->usage;
}

}  // namespace

// Refunds charges before the report, so that the report includes the refunds.
Exchange::~Exchange() {
  auto& admission = context_.admission;
  auto& report = context_.report;
  const auto ended = context_.worker.clock.now();
  if (begun_) {
    context_.watch.note_work(ended - context_.now);
    report.octets_read = context_.client.body().filled();
    report.body_in = context_.client.body().received();
  }
  admission.abandon();
  try {
    // weir forwards no octets for a question, so the reserve remains charged
    if (!report.is_question)
      admission.settlements().settle_bytes(report.body_in + report.tunnel_in, report.body_out);
    admission.settlements().end();
  } catch (const std::bad_alloc&) {  // no memory for the message to Redis, so the charge in Redis remains
  }
  if (!context_.buffers.permits.empty()) admission.end(ended, ending_of(report));
  leave();
  if (!begun_) return;
  if (report.route && !report.is_question) context_.route_tallies().in_flight.remove();
  report_access(report, {context_.worker, context_.config, context_.buffers, admission}, ended);
}

void Exchange::cancel() noexcept {
  if (token_key_wait_ != nullptr) token_key_wait_->cancel();
  if (queue_wait_ != nullptr) queue_wait_->cancel();
  if (pacing_ != nullptr) pacing_->cancel();
  if (upstream_ != nullptr) upstream_->cancel();
}

// Returns true if this request comes from a certificate authority that checks whether weir controls a domain
// name (ACME). The text of the answer is then in `buffers.text`. No route and no rule applies to such a
// request.
bool Exchange::is_challenge() {
  const auto* challenges = context_.worker.challenges;
  if (challenges == nullptr || context_.report.is_question || !challenges->are_pending()) return false;
  const auto& request = context_.buffers.request;
  if (request.head->method != "GET") return false;
  auto text = challenges->answer_to(request.path);
  if (text) context_.buffers.text = std::move(*text);
  return text.has_value();
}

net::Task<Ending> Exchange::run() {
  const auto& config = context_.config;
  auto& request = context_.buffers.request;
  context_.identify();
  begun_ = true;
  if (is_taken_over()) return give_up_waiting();
  if (is_challenge()) return reply_.answer_challenge();
  context_.report.route = config.route_finder.choose(config.routes, request, context_.buffers.found_routes);
  // the destructor decrements this counter
  if (context_.report.route && !context_.report.is_question) context_.route_tallies().in_flight.add();
  const auto* route = context_.route();
  const auto most = route != nullptr && route->max_body != 0 ? route->max_body : config.server.max_body;
  if (most != 0) context_.client.body().allow(most);
  const auto pre_check = run_pre_check(request, route, context_.client.head_size(), most);
  if (pre_check != PreCheck::None) return reply_.reject_early(pre_check);
  priority_ = policy::priority_of(request, route, config.tier_priorities);
  const bool forwards = !context_.report.is_question;
  if (forwards && config.cors && http::is_preflight(*config.cors, context_.buffers.head))
    return take_preflight();
  if (config.client.tokens) {
    if (AdmissionResult admission_result; is_rejected_unverified(admission_result))
      return apply_decision(admission_result);
    if (const auto source = lacking_keys()) return wait_for_key(*source);
  }
  return verify_and_decide();
}

// Answers a CORS preflight if [cors] demands that, or if weir answers all requests of the route itself.
// Otherwise forwards the preflight. Checks no limit, but paces the server's answer.
net::Task<Ending> Exchange::take_preflight() {
  const auto* route = context_.route();
  context_.worker.counters.preflights.add();
  if (route != nullptr && (route->respond || context_.config.cors->answers_preflights))
    return reply_.answer_preflight();
  context_.buffers.evaluation.collect_paced(context_.buffers.rules, context_.buffers.request,
                                            context_.config.names);
  return enter() ? pass_on() : reply_.shed(priority_);
}

net::Task<Ending> Exchange::show_usage() {
  Usage usage(context_);
  context_.watch.begin_cancellable_wait();
  co_await usage.read();
  context_.watch.end_cancellable_wait();
  context_.read_clock();
  if (context_.watch.left()) {
    context_.note_client_error(observe::ClientError::Left, "client_left");
    co_return Ending::Close;
  }
  co_return co_await reply_.show(usage);
}

// Returns true if the rules that need no claim of the token already refuse the request. In that case weir
// does not verify the token.
bool Exchange::is_rejected_unverified(AdmissionResult& admission_result) {
  const auto& request = context_.buffers.request;
  if (shows_usage(context_) || !policy::needs_claims(context_.buffers.rules, request)) return false;
  context_.report.asked_at = context_.now;
  return context_.admission.refuses_unverified(context_.now, admission_result);
}

// Returns the keys that weir has to fetch before it verifies the token. Returns nullopt if weir can verify
// the token now, or if neither a rule nor the route needs a claim.
std::optional<policy::TokenVerifier::KeySource> Exchange::lacking_keys() {
  const auto& request = context_.buffers.request;
  const auto& config = context_.config;
  const auto* route = context_.route();
  if (request.client.token.empty()) return std::nullopt;
  const bool for_rules =
      shows_usage(context_) ? policy::needs_claims_for_usage(config.rules, request) : needs_token_to_decide();
  const auto for_server = [&] {
    const auto& settings = context_.snapshot.pool(route->upstream).settings();
    return policy::needs_claims(settings.hash_key, request);
  };
  const bool for_route = route != nullptr && !context_.report.is_question &&
                         (policy::uses_token(*route) || (!route->respond && for_server()));
  if (!for_rules && !for_route) return std::nullopt;
  return config.client.tokens->lacking(request.client.token);
}

// Returns true if a rule or the priority of the request depends on the token, and the token is not verified.
bool Exchange::needs_token_to_decide() const {
  const auto& request = context_.buffers.request;
  return policy::needs_claims(context_.buffers.rules, request) ||
         (!context_.config.tier_priorities.empty() && policy::awaits_tier(request.client));
}

void Exchange::verify_token() {
  context_.verify_token();
  priority_ =
      policy::priority_of(context_.buffers.request, context_.route(), context_.config.tier_priorities);
}

net::Task<Ending> Exchange::wait_for_key(policy::TokenVerifier::KeySource source) {
  {
    TokenKeyWait wait(context_, source);
    const ScopedCancelTarget cancel_target(token_key_wait_, wait);
    co_await wait.run();
  }
  auto& watch = context_.watch;
  if (watch.left() || watch.has_disconnected() || context_.worker.hard_stop || is_taken_over())
    co_return co_await give_up_waiting();
  watch.clear_late();
  co_return co_await verify_and_decide();
}

net::Task<Ending> Exchange::verify_and_decide() {
  if (shows_usage(context_)) return show_usage();
  if (context_.config.client.tokens && needs_token_to_decide()) verify_token();
  return context_.config.inspects ? inspect() : decide();
}

// Reads the body for the rules that need it, unless a rule that needs no body already refuses the request.
net::Task<Ending> Exchange::inspect() {
  if (BodyInspector(context_).show_at_hand()) return decide();
  AdmissionResult admission_result;
  context_.report.asked_at = context_.now;
  return context_.admission.refuses_by_head(context_.now, admission_result) ? apply_decision(admission_result)
                                                                            : read_body();
}

net::Task<Ending> Exchange::read_body() {
  BodyInspector inspector(context_);
  const auto outcome = co_await inspector.read();
  if (!outcome) co_return co_await decide();
  if (!outcome->error) co_return outcome->ending;
  co_return co_await reply_.error_unread(outcome->error);
}

net::Task<Ending> Exchange::decide() {
  if (!enter()) return reply_.shed(priority_);
  context_.report.asked_at = context_.now;
  AdmissionResult admission_result;
  return context_.admission.decide_here(context_.now, priority_, admission_result)
             ? apply_decision(admission_result)
             : ask_redis();
}

net::Task<Ending> Exchange::ask_redis() {
  context_.watch.begin_cancellable_wait();
  const auto admission_result = co_await context_.admission.ask_redis();
  context_.watch.end_cancellable_wait();
  context_.read_clock();
  context_.report.redis = context_.now - context_.report.asked_at;
  context_.worker.counters.decision_seconds.record(context_.report.redis);
  if (context_.watch.left()) {
    context_.admission.refund();
    context_.note_client_error(observe::ClientError::Left, "client_left");
    co_return Ending::Close;
  }
  co_return co_await apply_decision(admission_result);
}

net::Task<Ending> Exchange::apply_decision(const AdmissionResult& admission_result) {
  auto& report = context_.report;
  report.decision = admission_result.decision;
  report.decided = !admission_result.rejection && admission_result.closed == nullptr;
  report.rejecting_rule = admission_result.rejection.rule;
  report.too_many_rules = admission_result.rejection.too_many_rules;
  report.closed = admission_result.closed;
  if (!report.decided) return reply_.refuse(admission_result);
  if (context_.worker.retiring) ++context_.worker.decided_apart;
  context_.note_rate_limit_headers(report.decision);
  if (report.is_question && report.decision.verdict != policy::Verdict::Reject) return admit_question();
  switch (report.decision.verdict) {
    case policy::Verdict::Reject:
      return reply_.refuse(admission_result);
    case policy::Verdict::Delay:
      return wait_in_queue();
    case policy::Verdict::Forward:
      break;
  }
  return pass_on();
}

// Waits for the request's departure, then goes on with the request. A waiting request does not count as in
// flight, so it takes no room from other requests.
net::Task<Ending> Exchange::wait_in_queue() {
  QueueWait wait(context_, priority_);
  const bool counted = in_flight_;
  leave();
  QueueWait::Result result{};
  {
    const ScopedCancelTarget cancel_target(queue_wait_, wait);
    result = co_await wait.run();
  }
  switch (result.end) {
    case QueueWait::End::Departed:
      break;
    case QueueWait::End::Refused:
      co_return co_await reply_.refuse_waiting(wait.delayed(), result.retry_after);
    case QueueWait::End::GivesWay:
      co_return co_await reply_.reject_displaced(priority_, result.retry_after);
    case QueueWait::End::Stopped:
      co_return co_await reply_.error({503, "this server is stopping; please retry"});
    case QueueWait::End::Left:
      co_return Ending::Close;
  }
  if (counted) context_.worker.in_flight.enter_again();
  in_flight_ = counted;
  co_return co_await pass_on();
}

net::Task<Ending> Exchange::pass_on() {
  const auto* route = context_.route();
  const bool last = route != nullptr && is_final_recipient(*route, context_.buffers.head);
  if (route != nullptr && !route->respond && !last) {
    auto& pool = context_.snapshot.pool(route->upstream);
    const auto pause =
        route->honor_retry_after ? pool.server_group().paused_until() - context_.now : base::Duration{0};
    return pause > base::Duration{0} ? reply_.answer_paused(pause) : forward(pool);
  }
  context_.admission.keep();
  return last ? reply_.answer_max_forwards() : reply_.respond(route);
}

// Ends the exchange of a question that no rule refuses. Sends nothing, because the caller answers the asker.
// The charges remain. If the request would have to wait in a queue, its departure remains promised, and the
// asker must wait for this departure.
net::Task<Ending> Exchange::admit_question() {
  auto& report = context_.report;
  report.status = 200;
  report.admitted = true;
  if (report.decision.verdict == policy::Verdict::Delay) {
    const auto delayed = context_.admission.delayed();
    report.departed = std::max(delayed.departure.at, delayed.not_before);
    report.wait = std::max(report.departed - context_.now, base::Duration{0});
  }
  context_.admission.keep();
  return net::Task<Ending>::ended(Ending::Answered);
}

net::Task<Ending> Exchange::forward(upstream::Pool& pool) {
  auto pacing = Pacing::make(context_.worker, context_.buffers.evaluation, context_.report.paced);
  if (pacing && context_.has_whole_body()) {
    const bool counted = in_flight_;
    const bool goes_on = co_await hold_body(*pacing, pool.settings().timeouts.response);
    if (!goes_on) co_return co_await give_up_waiting();
    if (counted && !in_flight_ && !enter()) {
      context_.refund();
      co_return co_await reply_.shed(priority_);
    }
  }
  UpstreamExchange upstream(context_, pool, priority_, std::move(pacing));
  const ScopedCancelTarget cancel_target(upstream_, upstream);
  const auto outcome = co_await upstream.run();
  if (!outcome.error) co_return outcome.ending;
  co_return co_await reply_.error(outcome.error);
}

// Waits until `pacing` has admitted the whole body, piece by piece. Called for a body that arrived whole with
// its head. After the wait, the server gets the whole body at once. Returns false if the client has left or
// weir stops. A waiting request does not count as in flight, so it takes no room from other requests.
//
// Does not wait if a rule has read the body, because the body then takes memory that all requests share
// (max_body_memory).
net::Task<bool> Exchange::hold_body(Pacing& pacing, base::Duration patience) {
  auto& watch = context_.watch;
  auto& gate = pacing.to_server();
  const ScopedCancelTarget cancel_target(pacing_, pacing);
  auto rest = static_cast<std::size_t>(context_.buffers.head.content_length);
  if (context_.buffers.inspected.size() != 0) {
    gate.charge_at_once(rest);
    co_return true;
  }
  while (rest > 0) {
    const auto admitted = gate.admit(rest);
    gate.passed(admitted);
    rest -= admitted;
    if (admitted > 0) continue;
    leave();
    watch.arm(gate.wait() + patience);
    watch.begin_cancellable_wait();
    co_await gate.hold();
    watch.end_cancellable_wait();
    watch.disarm();
    context_.read_clock();
    if (watch.left() || watch.has_disconnected() || context_.worker.hard_stop) co_return false;
    watch.clear_late();
  }
  co_return true;
}

// Returns true if the request is a question and an upgrade is under way. This process then does not decide:
// the new process would not know of the charge, and would admit the same units again. The asker can ask the
// new process.
bool Exchange::is_taken_over() const noexcept {
  return context_.report.is_question && context_.worker.is_handing_over();
}

// Ends a request before any server has got it. The client has left, or weir stops, or a new process takes
// over (only for questions).
net::Task<Ending> Exchange::give_up_waiting() {
  context_.refund();
  if (context_.watch.left() || context_.watch.has_disconnected()) {
    context_.note_client_error(observe::ClientError::Left, "client_left");
    return net::Task<Ending>::ended(Ending::Close);
  }
  context_.watch.clear_late();
  context_.report.failure = is_taken_over() ? kTakenOver : "stopped";
  return reply_.error(is_taken_over() ? kTakenOverError
                                      : LocalError{503, "this server is stopping; please retry"});
}

// Counts the request as in flight and returns true. Returns false if too many requests are in flight. Always
// returns true for questions and for requests that weir answers itself, and does not count them. So a health
// check does not fail under load.
bool Exchange::enter() noexcept {
  auto& in_flight = context_.worker.in_flight;
  const auto* route = context_.route();
  if (route == nullptr || route->respond || !in_flight.bounded() || context_.report.is_question) return true;
  in_flight_ = in_flight.enter(priority_);
  return in_flight_;
}

void Exchange::leave() noexcept {
  if (std::exchange(in_flight_, false)) context_.worker.in_flight.leave();
}

}  // namespace weir::proxy
