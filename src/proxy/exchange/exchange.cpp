#include "proxy/exchange/exchange.hpp"

#include "proxy/admission/standing.hpp"
#include "proxy/client/session.hpp"
#include "proxy/exchange/access_report.hpp"
#include "proxy/upstream/tunnel.hpp"
#include "proxy/upstream/upload.hpp"

#include "weir/policy/claims.hpp"
#include "weir/policy/inquiry.hpp"

#include <new>
#include <utility>

namespace weir::proxy {

namespace {

// A refused request's body is read and dropped up to this size to keep the connection; beyond it the
// connection goes.
constexpr std::uint64_t kDiscarded = 64 << 10;

// The access log's `failure` of requests that say too much by name, or whose path has several readings.
constexpr std::string_view kTooManyParameters = "too_many_parameters";
constexpr std::string_view kAmbiguousPath = "ambiguous_path";

}  // namespace

Exchange::Exchange(Session& session)
    : session_(session),
      worker_(session.worker),
      stay_(session.worker.terms),
      config_(stay_.config()),
      space_(session.worker.take_space()),
      gate_(session.worker, config_, *space_) {}

// The report comes last, so that it tells of refunds as well.
Exchange::~Exchange() {
  const auto ended = worker_.clock.now();
  if (begun_) session_.note_work(ended - latest_);
  gate_.abandon();
  try {
    gate_.settlements().end();
  } catch (const std::bad_alloc&) {  // to tell Redis with: what was charged stands
  }
  if (!space_->permits.empty()) gate_.end(ended, ending_of(report_));
  if (begun_) account(ended);
  leave();
  worker_.give_back(std::move(space_));
}

void Exchange::account(base::TimePoint ended) noexcept {
  report_.octets_read = request_body_->filled();
  report_.body_in = request_body_->received();
  report_access(report_, {worker_, config_, *space_, gate_}, ended);
}

void Exchange::cancel() noexcept {
  if (ticket_ != nullptr) ticket_->leave();
  if (pause_ != nullptr) pause_->cancel();
  if (tunnel_ != nullptr) tunnel_->cancel();
  lease_.cancel();
}

std::optional<http::Fault> Exchange::read_head(std::size_t size) {
  session_.inbox.make_room_behind(size);
  const auto bytes = session_.inbox.unread().substr(0, size);
  session_.inbox.use_and_pin(size);
  head_bytes_ = bytes;
  auto& space = *space_;
  if (auto fault = http::parse_request_head(bytes, space.head)) return fault;
  space.head.bounds = config_.client.bounds;
  const auto& head = space.head;
  report_.started = latest_ = worker_.clock.now();
  report_.machine_started = net::Clock::machine_now();
  const auto most = config_.server.max_body;
  request_body_.emplace(session_.client, session_.inbox, head.framing, head.content_length,
                        most == 0 ? BodySource::kUnbounded : most);
  space.credentials.now = report_.started;
  space.credentials.machine_now = report_.machine_started;
  space.credentials.certificate_subject = session_.certificate_subject();
  space.request = policy::request_of(config_.client, session_.peer, head, space.credentials, space.texts);
  if (config_.elastic) space.request.load = worker_.load.load();
  return std::nullopt;
}

net::Task<Exchange::Ending> Exchange::run() {
  auto& space = *space_;
  begun_ = true;
  report_.route = policy::choose_route(config_.routes, space.request);
  const auto* route = report_.route ? &config_.routes[*report_.route] : nullptr;
  const auto most = route != nullptr && route->max_body != 0 ? route->max_body : config_.server.max_body;
  if (route != nullptr && route->max_body != 0) request_body_->allow(most);
  const auto barrier = barrier_to(space.request, route, head_bytes_.size(), most);
  if (barrier != Barrier::None) return turn_away(barrier);
  priority_ = policy::priority_of(space.request, route, config_.tier_priorities);
  if (Ruling ruling; is_refused_unverified(ruling)) return carry_out(ruling);
  return config_.inspects ? inspect() : decide();
}

// If a rule needs claims: whether the others refuse whatever the token says. If they do not, it is verified.
bool Exchange::is_refused_unverified(Ruling& ruling) {
  if (!policy::needs_claims(config_.rules, space_->request)) return false;
  report_.asked_at = latest_;
  if (gate_.refuses_unverified(report_.asked_at, ruling)) return true;
  verify_token();
  return false;
}

void Exchange::verify_token() {
  if (const auto fault = policy::verify_token(space_->request.client, space_->credentials))
    worker_.counters.token_faults(*fault).add();
}

net::Task<Exchange::Ending> Exchange::turn_away(Barrier barrier) {
  using observe::ClientError;
  auto& counters = worker_.counters;
  if (barrier == Barrier::HeadTooLarge) counters.client_errors(ClientError::HeadTooLarge).add();
  if (barrier == Barrier::BodyTooLarge) counters.client_errors(ClientError::BodyTooLarge).add();
  if (barrier == Barrier::Excess) note_client_error(ClientError::Excess, kTooManyParameters);
  if (barrier == Barrier::PathAmbiguous) note_client_error(ClientError::BadHead, kAmbiguousPath);
  if (barrier == Barrier::Ambiguous) note_client_error(ClientError::BadHead, "ambiguous_credential");
  if (barrier == Barrier::Excess) return error(400, policy::describe(space_->head.excess()));
  const auto said = answer_at(barrier, space_->request);
  return error(said.status, said.what);
}

void Exchange::note_client_error(observe::ClientError error, std::string_view failure) {
  worker_.counters.client_errors(error).add();
  report_.failure = failure;
}

// Faults that verifying finds are counted there, whether or not a rule refuses the request for them.
void Exchange::note_token_fault(policy::TokenFault fault) {
  report_.failure = policy::error_of(fault);
  if (!space_->request.client.token_fault) worker_.counters.token_faults(fault).add();
}

net::Task<Exchange::Ending> Exchange::decide() {
  if (!enter()) return shed();
  report_.asked_at = latest_;
  Ruling ruling;
  return gate_.decide_here(report_.asked_at, priority_, ruling) ? carry_out(ruling) : ask_redis();
}

net::Task<Exchange::Ending> Exchange::ask_redis() {
  session_.begin_wait_for_others();
  const auto ruling = co_await gate_.ask_redis();
  session_.end_wait_for_others();
  latest_ = worker_.clock.now();
  worker_.counters.decision_seconds.record(latest_ - report_.asked_at);
  if (session_.left()) {
    gate_.refund();
    report_.failure = "client_left";
    worker_.counters.client_errors(observe::ClientError::Left).add();
    co_return Ending::Close;
  }
  co_return co_await carry_out(ruling);
}

net::Task<Exchange::Ending> Exchange::carry_out(const Ruling& ruling) {
  report_.decision = ruling.decision;
  report_.decided = !ruling.objection && ruling.closed == nullptr;
  if (report_.decided && worker_.retiring) ++worker_.decided_apart;
  report_.unmet = ruling.objection.rule;
  report_.closed = ruling.closed;
  if (ruling.objection || ruling.closed != nullptr) return refuse(ruling);
  note_standing(report_.decision);
  switch (report_.decision.verdict) {
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
  const auto* route = report_.route ? &config_.routes[*report_.route] : nullptr;
  const bool last = route != nullptr && ends_here(*route, space_->head);
  if (route != nullptr && !route->respond && !last) {
    auto& pool = stay_.pool(route->upstream);
    const auto pause = route->honor_retry_after ? pool.fleet().paused_until() - latest_ : base::Duration{0};
    return pause > base::Duration{0} ? answer_paused(pause) : forward(pool);
  }
  gate_.keep();
  if (last) return answer_last();
  if (gate_.settlements().due()) settle(route != nullptr ? route->respond->status : 404, nullptr);
  if (route == nullptr) return error(404, "no route matches this request");
  return answer({.status = route->respond->status,
                 .content_type = route->respond->content_type,
                 .body = route->respond->body,
                 .fields = space_->standing,
                 .no_store = false});
}

net::Task<Exchange::Ending> Exchange::answer_last() {
  const auto said = answer_as_last(space_->head);
  if (gate_.settlements().due()) settle(said.status, nullptr);
  if (!said.what.empty()) return error(said.status, said.what);
  return answer({.status = said.status, .fields = space_->standing, .no_store = false});
}

void Exchange::note_standing(const policy::Decision& decision) {
  space_->standing.clear();
  if (decision.rule == nullptr) return;
  append_standing(space_->standing, decision, config_.server, gate_.reset_at(decision));
}

net::Task<Exchange::Ending> Exchange::refuse(const Ruling& ruling) {
  if (ruling.objection) {
    if (ruling.objection.excess) note_client_error(observe::ClientError::Excess, kTooManyParameters);
    if (policy::is_about_path(ruling.objection))
      note_client_error(observe::ClientError::BadHead, kAmbiguousPath);
    if (ruling.objection.token) note_token_fault(*ruling.objection.token);
    space_->text.clear();
    append_objection(space_->standing, space_->text, ruling.objection, config_.client);
    return answer(
        {.status = policy::status_of(ruling.objection), .body = space_->text, .fields = space_->standing});
  }
  if (ruling.closed != nullptr) {
    report_.failure = "store_closed";
    return error(503, "the limiter's store cannot be reached; please retry");
  }
  return refuse_by(*ruling.decision.rule, ruling.decision.outcome.retry_after);
}

net::Task<Exchange::Ending> Exchange::refuse_by(const policy::Rule& rule, base::Duration retry_after) {
  auto& space = *space_;
  space.text.clear();
  const auto refusal = append_refusal(space.standing, space.text, rule, retry_after, space.head.fields);
  return answer({.status = refusal.status,
                 .content_type = refusal.content_type,
                 .body = space.text,
                 .fields = space.standing});
}

net::Task<Exchange::Ending> Exchange::error(unsigned status, std::string_view what) {
  space_->text.clear();
  append_error(space_->standing, space_->text, status, what, config_.client);
  return answer({.status = status, .body = space_->text, .fields = space_->standing});
}

// The answer settles what was charged for it; what is told of the limits is how they stand then.
void Exchange::settle(unsigned status, const http::ResponseHead* head) {
  if (gate_.settlements().answered(status, head, latest_)) note_standing(gate_.standing());
}

// Sends an answer of our own, at once: what is still to come of the request's body is no reason to wait.
net::Task<Exchange::Ending> Exchange::answer(http::Answer answer) {
  answer.keep_alive = space_->head.framing == http::Framing::None || drop_body();
  return send(answer);
}

// Ends an exchange whose client did not take all of a text: it would read any other text as the rest of that
// one. `late`: the client had its time, and did not leave.
Exchange::Ending Exchange::give_up_writing(bool late) {
  using observe::ClientError;
  report_.failure = late ? "write_timeout" : "client_left";
  worker_.counters.client_errors(late ? ClientError::WriteTimeout : ClientError::Left).add();
  return Ending::Abort;
}

// Gives the request its id: the one that a trusted proxy sent, else a new one. Answers, the server's request
// and the log carry the same.
void Exchange::name_request() {
  auto& space = *space_;
  if (!space.request_id.empty()) return;
  const auto* said = space.request.client.peer_trusted
                         ? http::find_field(space.head.fields, http::FieldId::XRequestId)
                         : nullptr;
  if (said != nullptr && !said->hop_by_hop && !said->value.empty())
    space.request_id = said->value;
  else
    worker_.make_request_id(space.request_id);
}

net::Task<Exchange::Ending> Exchange::send(const http::Answer& in_step) {
  if (session_.client.owes_write()) return net::Task<Ending>::ended(give_up_writing(!session_.has_gone()));
  auto& space = *space_;
  name_request();
  const auto& head = space.head;
  auto answer = in_step;
  answer.keep_alive = in_step.keep_alive && head.keep_alive && !session_.is_leaving();
  answer.omit_body = head.method == "HEAD";
  answer.client_minor_version = head.minor_version;
  answer.date = date();
  answer.request_id = space.request_id;
  report_.status = answer.status;
  if (!answer.omit_body) report_.body_out = answer.body.size();
  space.out.clear();
  http::write_answer(space.out, answer);
  net::ErrorCode ec;
  const auto sent = session_.client.try_write(space.out, {}, ec);
  if (!ec && sent < space.out.size()) return send_rest(sent, answer.keep_alive);
  return net::Task<Ending>::ended(answered_with(ec, sent, answer.keep_alive));
}

net::Task<Exchange::Ending> Exchange::send_rest(std::size_t sent, bool keep_alive) {
  session_.arm(config_.server.write_timeout);
  const auto& out = space_->out;
  const auto ec = co_await session_.client.write_rest(std::string_view(out).substr(sent));
  latest_ = worker_.clock.now();
  co_return answered_with(ec, out.size(), keep_alive);
}

Exchange::Ending Exchange::answered_with(const net::ErrorCode& ec, std::size_t sent, bool keep_alive) {
  worker_.counters.bytes_out.add(sent);
  if (ec) return give_up_writing(session_.late());
  if (!keep_alive) return Ending::Linger;
  const bool whole = space_->head.framing == http::Framing::None || request_body_->complete();
  return whole ? Ending::KeepAlive : Ending::DropRest;
}

// Drops what of the body is at hand. Whether the next request can follow: once the rest was dropped as well,
// where some is to come.
bool Exchange::drop_body() {
  auto& body = *request_body_;
  const auto& head = space_->head;
  if (body.complete()) return true;
  if (head.content_length > kDiscarded || upload_) return false;
  body.allow(kDiscarded);
  const auto status = body.drop();
  if (status == BodySource::Status::End) return true;
  // Who waits for our word before the body may send it or not (RFC 9110 §10.1.1).
  return status == BodySource::Status::NeedBytes && !head.expects_continue;
}

}  // namespace weir::proxy
