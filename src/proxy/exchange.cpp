#include "proxy/exchange.hpp"

#include "proxy/session.hpp"
#include "proxy/tunnel.hpp"
#include "proxy/upload.hpp"

#include "weir/http/target.hpp"
#include "weir/policy/redaction.hpp"

#include <new>
#include <utility>

namespace weir::proxy {

namespace {

// A refused request's body is read and dropped up to this size to keep the connection; beyond it the
// connection goes.
constexpr std::uint64_t kDiscarded = 64 << 10;

}  // namespace

Exchange::Exchange(Session& session)
    : session_(session),
      worker_(session.worker),
      space_(session.worker.take_space()),
      gate_(session.worker, *space_) {}

Exchange::~Exchange() {
  if (begun_) account();
  gate_.abandon();
  try {
    gate_.settlements().end();
  } catch (const std::bad_alloc&) {  // to tell Redis with: what was charged stands
  }
  if (!space_->permits.empty()) gate_.end(worker_.clock.now(), how_it_went());
  leave();
  worker_.give_back(std::move(space_));
}

void Exchange::cancel() noexcept {
  if (ticket_ != nullptr) ticket_->leave();
  if (pause_ != nullptr) pause_->cancel();
  if (tunnel_ != nullptr) tunnel_->cancel();
  lease_.cancel();
}

std::optional<http::Fault> Exchange::read_head(std::size_t size) {
  const auto bytes = session_.inbox.unread().substr(0, size);
  session_.inbox.use_and_pin(size);
  head_size_ = size;
  auto& space = *space_;
  if (auto fault = http::parse_request_head(bytes, space.head)) return fault;
  const auto& head = space.head;
  started_ = latest_ = worker_.clock.now();
  const auto most = worker_.config.server.max_body;
  request_body_.emplace(session_.client, session_.inbox, head.framing, head.content_length,
                        most == 0 ? BodySource::kUnbounded : most);
  space.credentials.now = started_;
  space.credentials.certificate_subject = session_.certificate_subject();
  space.request = {.head = &head,
                   .path = http::normalise_path(head.path, space.path_scratch),
                   .host = http::normalise_host(head.authority, space.host_scratch),
                   .route = {},
                   .client = policy::identify(worker_.config.client, session_.peer, head, space.credentials),
                   .now = started_,
                   .load = worker_.config.elastic ? worker_.load.load() : 1};
  return std::nullopt;
}

net::Task<Exchange::Ending> Exchange::run() {
  auto& space = *space_;
  begun_ = true;
  route_ = policy::find_route(worker_.config.routes, space.request);
  const auto* route = route_ ? &worker_.config.routes[*route_] : nullptr;
  if (route != nullptr) space.request.route = route->name;
  if (route != nullptr && route->max_head != 0 && head_size_ > route->max_head) {
    worker_.counters.client_errors(observe::ClientError::HeadTooLarge).add();
    return error(431, "the request head is too large");
  }
  const auto most =
      route != nullptr && route->max_body != 0 ? route->max_body : worker_.config.server.max_body;
  if (route != nullptr && route->max_body != 0) request_body_->allow(most);
  if (most != 0 && space.head.content_length > most) {
    worker_.counters.client_errors(observe::ClientError::BodyTooLarge).add();
    return error(413, "the request body is too large");
  }
  if (const auto what = space.request.client.ambiguity; !what.empty()) {
    worker_.counters.client_errors(observe::ClientError::BadHead).add();
    failure_ = "ambiguous_credential";
    return error(400, what);
  }
  if (space.request.client.key_rejected) return error(401, "the API key is not known");
  priority_ = policy::priority_of(space.request, route, worker_.config.tier_priorities);
  return worker_.config.inspects ? inspect() : decide();
}

net::Task<Exchange::Ending> Exchange::decide() {
  if (!enter()) return shed();
  asked_at_ = latest_;
  Ruling ruling;
  return gate_.decide_here(asked_at_, priority_, ruling) ? carry_out(ruling) : ask_redis();
}

net::Task<Exchange::Ending> Exchange::ask_redis() {
  session_.begin_wait_for_others();
  const auto ruling = co_await gate_.ask_redis();
  session_.end_wait_for_others();
  latest_ = worker_.clock.now();
  worker_.counters.decision_seconds.record(latest_ - asked_at_);
  if (session_.left()) {
    gate_.refund();
    failure_ = "client_left";
    worker_.counters.client_errors(observe::ClientError::Left).add();
    co_return Ending::Close;
  }
  co_return co_await carry_out(ruling);
}

net::Task<Exchange::Ending> Exchange::carry_out(const Ruling& ruling) {
  decision_ = ruling.decision;
  decided_ = !ruling.objection && ruling.closed == nullptr;
  if (ruling.objection || ruling.closed != nullptr) return refuse(ruling);
  note_standing(decision_);
  switch (decision_.verdict) {
    case policy::Verdict::Reject:
      return refuse(ruling);
    case policy::Verdict::Delay:
      return await_turn();
    case policy::Verdict::Forward:
      break;
  }
  return pass_on();
}

net::Task<Exchange::Ending> Exchange::pass_on() {
  const auto* route = route_ ? &worker_.config.routes[*route_] : nullptr;
  if (route != nullptr && !route->respond && space_->head.max_forwards != 0U) {
    auto& pool = worker_.pools[route->upstream];
    const auto pause = route->honor_retry_after ? pool.fleet().paused_until() - latest_ : base::Duration{0};
    return pause > base::Duration{0} ? answer_paused(pause) : forward(pool);
  }
  gate_.keep();
  if (route != nullptr && !route->respond) return answer_as_last();
  if (gate_.settlements().due()) settle(route != nullptr ? route->respond->status : 404, nullptr);
  if (route == nullptr) return error(404, "no route matches this request");
  return answer({.status = route->respond->status,
                 .content_type = route->respond->content_type,
                 .body = route->respond->body,
                 .fields = space_->standing,
                 .no_store = false});
}

// The request may not be passed on any more (RFC 9110 §7.6.2), so that weir is whom it is for.
net::Task<Exchange::Ending> Exchange::answer_as_last() {
  const bool traced = space_->head.method == "TRACE";
  if (gate_.settlements().due()) settle(traced ? 501 : 200, nullptr);
  if (traced) return error(501, "TRACE is not supported");
  return answer({.status = 200, .fields = space_->standing, .no_store = false});
}

void Exchange::note_standing(const policy::Decision& decision) {
  space_->standing.clear();
  if (decision.rule == nullptr) return;
  const auto& outcome = decision.outcome;
  const auto& server = worker_.config.server;
  http::append_standing(space_->standing,
                        {.rule = decision.rule->name,
                         .limit = limit::quota_of(*decision.limiter, outcome),
                         .remaining = outcome.remaining,
                         .window = limit::window(*decision.limiter),
                         .more_after = outcome.more_after,
                         .reset_at = asked_at_ + outcome.reset_after,
                         .exceeded = decision.exceeded,
                         .concurrency = limit::holds(*decision.limiter)},
                        {.x = server.x_ratelimit, .ietf = server.ietf_ratelimit});
}

net::Task<Exchange::Ending> Exchange::refuse(const Ruling& ruling) {
  if (ruling.objection) {
    const auto status = policy::status_of(ruling.objection);
    if (status == 415) space_->standing = "Accept-Encoding: identity\r\n";  // RFC 9110 §15.5.16
    return error(status, policy::describe(ruling.objection));
  }
  if (ruling.closed != nullptr) {
    failure_ = "store_closed";
    return error(503, "the limiter's store cannot be reached; please retry");
  }
  return refuse_by(*ruling.decision.rule, ruling.decision.outcome.retry_after);
}

net::Task<Exchange::Ending> Exchange::refuse_by(const policy::Rule& rule, base::Duration retry_after) {
  auto& space = *space_;
  const http::Refusal refusal{.rule = rule.name,
                              .status = rule.refusal_status,
                              .retry_after_seconds = http::retry_after_seconds(retry_after)};
  if (refusal.retry_after_seconds) http::append_retry_after(space.standing, *refusal.retry_after_seconds);
  const auto* accept = http::find_field(space.head.fields, http::FieldId::Accept);
  const bool problem = accept != nullptr && http::wants_problem_json(accept->value);
  space.text.clear();
  if (rule.refusal_body)
    space.text = *rule.refusal_body;
  else if (problem)
    http::append_refusal_problem(space.text, refusal);
  else
    http::append_refusal_json(space.text, refusal);
  return answer({.status = refusal.status,
                 .content_type = rule.refusal_body ? "text/plain; charset=utf-8"
                                 : problem         ? "application/problem+json"
                                                   : "application/json",
                 .body = space.text,
                 .fields = space.standing});
}

net::Task<Exchange::Ending> Exchange::error(unsigned status, std::string_view what) {
  space_->text.clear();
  http::append_error_json(space_->text, status, what);
  return answer({.status = status, .body = space_->text, .fields = space_->standing});
}

// The answer settles what was charged for it; what is told of the limits is how they stand then.
void Exchange::settle(unsigned status, const http::ResponseHead* head) {
  if (gate_.settlements().answered(status, head, latest_)) note_standing(gate_.standing());
}

// Sends an answer of our own, having read the request's body out of the way where that is cheap.
net::Task<Exchange::Ending> Exchange::answer(http::Answer answer) {
  if (space_->head.framing != http::Framing::None) return answer_after_body(answer);
  answer.keep_alive = true;
  return send(answer);
}

net::Task<Exchange::Ending> Exchange::answer_after_body(http::Answer answer) {
  session_.arm(worker_.config.server.head_timeout);  // for all of it
  answer.keep_alive = co_await discard_body();
  session_.disarm();
  session_.clear_late();
  co_return co_await send(answer);
}

net::Task<Exchange::Ending> Exchange::send(const http::Answer& in_step) {
  auto& space = *space_;
  const auto& head = space.head;
  auto answer = in_step;
  answer.keep_alive = in_step.keep_alive && head.keep_alive && !worker_.draining;
  answer.omit_body = head.method == "HEAD";
  answer.client_minor_version = head.minor_version;
  answer.date = worker_.http_date(latest_);
  status_ = answer.status;
  if (!answer.omit_body) bytes_out_ = answer.body.size();
  space.out.clear();
  http::write_answer(space.out, answer);
  net::ErrorCode ec;
  const auto sent = session_.client.try_write(space.out, {}, ec);
  if (!ec && sent < space.out.size()) return send_rest(sent, answer.keep_alive);
  return net::Task<Ending>::ended(answered_with(ec, sent, answer.keep_alive));
}

net::Task<Exchange::Ending> Exchange::send_rest(std::size_t sent, bool keep_alive) {
  session_.arm(worker_.config.server.write_timeout);
  const auto& out = space_->out;
  const auto ec = co_await session_.client.write(std::string_view(out).substr(sent));
  co_return answered_with(ec, out.size(), keep_alive);
}

Exchange::Ending Exchange::answered_with(const net::ErrorCode& ec, std::size_t sent, bool keep_alive) {
  worker_.counters.bytes_out.add(sent);
  if (!ec) return keep_alive ? Ending::KeepAlive : Ending::Linger;
  failure_ = "client_left";
  return Ending::Close;
}

// True when the whole body was read and dropped: the next request can follow.
net::Task<bool> Exchange::discard_body() {
  auto& body = *request_body_;
  const auto& head = space_->head;
  if (body.complete()) co_return true;
  if (head.content_length > kDiscarded || (upload_ && !body.complete())) co_return false;
  std::string_view piece;
  for (;;) {
    const auto status = body.take(piece);
    if (status == BodySource::Status::End) co_return true;
    if (status == BodySource::Status::NeedBytes) {
      if (head.expects_continue) co_return false;  // the client waits for our word and will not send it
      const auto ec = co_await body.fill();
      if (ec) co_return false;
    } else if (status != BodySource::Status::Piece || body.received() > kDiscarded) {
      co_return false;
    }
  }
}

// What the upstream's answer, or its silence, says of its load.
limit::Ending Exchange::how_it_went() const noexcept {
  if (answered_ != base::TimePoint{} && space_->response.status >= 500) return {};  // no proof of speed
  if (answered_ != base::TimePoint{}) return {.latency = answered_ - sent_};
  return {.failed = failure_ == "upstream_failed"};
}

void Exchange::account() noexcept {
  auto& counters = worker_.counters;
  const auto now = worker_.clock.now();
  counters.requests(route_, status_).add();
  // Of a tunnel the time until it stood: how long it then lasts says nothing of weir.
  counters.request_seconds.record((status_ == 101 ? answered_ : now) - started_);
  counters.bytes_in.add(request_body_->filled());
  if (decided_) counters.verdicts(static_cast<observe::Verdict>(decision_.verdict)).add();
  if (answered_ != base::TimePoint{}) {
    counters.upstream_seconds.record(answered_ - sent_);
    if (space_->response.status >= 500) tallies().errors.add();
  }
  if (worker_.access_log == nullptr) return;
  try {
    log(now);
  } catch (const std::bad_alloc&) {
    counters.access_log_dropped.add();
  }
}

void Exchange::log(base::TimePoint now) {
  const auto& space = *space_;
  const auto& client = space.request.client;
  const auto said = [&](std::string_view name) {
    const auto* field = http::find_field(space.head.fields, name);
    return field != nullptr ? field->value : std::string_view{};
  };
  const auto span = [](base::TimePoint from, base::TimePoint to) {
    return from == base::TimePoint{} || to == base::TimePoint{} ? base::Duration{0} : to - from;
  };
  constexpr std::string_view kVerdicts[] = {"forward", "delay", "reject"};
  std::string redacted;
  worker_.access_log->record(
      {.start = started_,
       .total = now - started_,
       .queued = span(started_, departed_),
       .upstream = span(sent_, answered_),
       .client = client.address,
       .method = space.head.method,
       .target = policy::redacted(worker_.config.client, space.head.target, redacted),
       .host = space.head.authority,
       .route = space.request.route,
       .status = status_,
       .bytes_in = request_body_->received() + bytes_up_,
       .bytes_out = bytes_out_,
       .verdict = decided_ ? kVerdicts[static_cast<std::size_t>(decision_.verdict)] : std::string_view{},
       .rule = decision_.rule != nullptr ? std::string_view(decision_.rule->name) : std::string_view{},
       .key = gate_.key_in(decision_.rule),
       .server = server_ != nullptr ? std::string_view(*server_) : std::string_view{},
       .request_id = space.request_id,
       .traceparent = client.peer_trusted ? said("traceparent") : std::string_view{},
       .user_agent = said("user-agent"),
       .error = failure_});
}

}  // namespace weir::proxy
