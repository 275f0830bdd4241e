#include "proxy/exchange/exchange.hpp"

#include "proxy/admission/rate_limit_headers.hpp"
#include "proxy/client/session.hpp"
#include "proxy/exchange/access_report.hpp"
#include "proxy/upstream/tunnel.hpp"
#include "proxy/upstream/upload.hpp"

#include "weir/policy/claims.hpp"
#include "weir/policy/explain_request.hpp"

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
      snapshot_(session.worker.worker_snapshots),
      config_(snapshot_.config()),
      buffers_(session.worker.take_buffers()),
      admission_(session.worker, config_, *buffers_) {}

// The report comes last, so that it tells of refunds as well.
Exchange::~Exchange() {
  const auto ended = worker_.clock.now();
  if (begun_) session_.note_work(ended - latest_);
  admission_.abandon();
  try {
    admission_.settlements().end();
  } catch (const std::bad_alloc&) {  // to tell Redis with: what was charged stands
  }
  if (!buffers_->permits.empty()) admission_.end(ended, ending_of(report_));
  if (begun_) report_end(ended);
  leave();
  worker_.give_back(std::move(buffers_));
}

void Exchange::report_end(base::TimePoint ended) noexcept {
  report_.octets_read = request_body_->filled();
  report_.body_in = request_body_->received();
  report_access(report_, {worker_, config_, *buffers_, admission_}, ended);
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
  auto& buffers = *buffers_;
  if (auto fault = http::parse_request_head(bytes, buffers.head)) return fault;
  buffers.head.bounds = config_.client.bounds;
  const auto& head = buffers.head;
  report_.started = latest_ = worker_.clock.now();
  report_.machine_started = net::Clock::machine_now();
  const auto most = config_.server.max_body;
  request_body_.emplace(session_.client, session_.inbox, head.framing, head.content_length,
                        most == 0 ? BodySource::kUnbounded : most);
  buffers.credentials.now = report_.started;
  buffers.credentials.machine_now = report_.machine_started;
  buffers.credentials.certificate_subject = session_.certificate_subject();
  buffers.request =
      policy::request_of(config_.client, session_.peer, head, buffers.credentials, buffers.texts);
  if (config_.elastic) buffers.request.load = worker_.load.load();
  return std::nullopt;
}

net::Task<Exchange::Ending> Exchange::run() {
  auto& buffers = *buffers_;
  begun_ = true;
  report_.route = policy::choose_route(config_.routes, buffers.request);
  const auto* route = report_.route ? &config_.routes[*report_.route] : nullptr;
  const auto most = route != nullptr && route->max_body != 0 ? route->max_body : config_.server.max_body;
  if (route != nullptr && route->max_body != 0) request_body_->allow(most);
  const auto pre_check = run_pre_check(buffers.request, route, head_bytes_.size(), most);
  if (pre_check != PreCheck::None) return reject_early(pre_check);
  priority_ = policy::priority_of(buffers.request, route, config_.tier_priorities);
  if (AdmissionResult admission_result; is_rejected_unverified(admission_result))
    return apply_decision(admission_result);
  return config_.inspects ? inspect() : decide();
}

// If a rule needs claims: whether the others refuse whatever the token says. If they do not, it is verified.
bool Exchange::is_rejected_unverified(AdmissionResult& admission_result) {
  if (!policy::needs_claims(config_.rules, buffers_->request)) return false;
  report_.asked_at = latest_;
  if (admission_.refuses_unverified(report_.asked_at, admission_result)) return true;
  verify_token();
  return false;
}

void Exchange::verify_token() {
  if (const auto fault = policy::verify_token(buffers_->request.client, buffers_->credentials))
    worker_.counters.token_faults(*fault).add();
}

net::Task<Exchange::Ending> Exchange::reject_early(PreCheck pre_check) {
  using observe::ClientError;
  auto& counters = worker_.counters;
  if (pre_check == PreCheck::HeadTooLarge) counters.client_errors(ClientError::HeadTooLarge).add();
  if (pre_check == PreCheck::BodyTooLarge) counters.client_errors(ClientError::BodyTooLarge).add();
  if (pre_check == PreCheck::Excess) note_client_error(ClientError::Excess, kTooManyParameters);
  if (pre_check == PreCheck::PathAmbiguous) note_client_error(ClientError::BadHead, kAmbiguousPath);
  if (pre_check == PreCheck::Ambiguous) note_client_error(ClientError::BadHead, "ambiguous_credential");
  if (pre_check == PreCheck::Excess) return error(400, policy::describe(buffers_->head.excess()));
  const auto said = answer_to(pre_check, buffers_->request);
  return error(said.status, said.what);
}

void Exchange::note_client_error(observe::ClientError error, std::string_view failure) {
  worker_.counters.client_errors(error).add();
  report_.failure = failure;
}

// Faults that verifying finds are counted there, whether or not a rule refuses the request for them.
void Exchange::note_token_fault(policy::TokenFault fault) {
  report_.failure = policy::error_of(fault);
  if (!buffers_->request.client.token_fault) worker_.counters.token_faults(fault).add();
}

net::Task<Exchange::Ending> Exchange::decide() {
  if (!enter()) return shed();
  report_.asked_at = latest_;
  AdmissionResult admission_result;
  return admission_.decide_here(report_.asked_at, priority_, admission_result)
             ? apply_decision(admission_result)
             : ask_redis();
}

net::Task<Exchange::Ending> Exchange::ask_redis() {
  session_.begin_cancellable_wait();
  const auto admission_result = co_await admission_.ask_redis();
  session_.end_cancellable_wait();
  latest_ = worker_.clock.now();
  worker_.counters.decision_seconds.record(latest_ - report_.asked_at);
  if (session_.left()) {
    admission_.refund();
    report_.failure = "client_left";
    worker_.counters.client_errors(observe::ClientError::Left).add();
    co_return Ending::Close;
  }
  co_return co_await apply_decision(admission_result);
}

net::Task<Exchange::Ending> Exchange::apply_decision(const AdmissionResult& admission_result) {
  report_.decision = admission_result.decision;
  report_.decided = !admission_result.objection && admission_result.closed == nullptr;
  if (report_.decided && worker_.retiring) ++worker_.decided_apart;
  report_.unmet = admission_result.objection.rule;
  report_.closed = admission_result.closed;
  if (admission_result.objection || admission_result.closed != nullptr) return refuse(admission_result);
  note_rate_limit_headers(report_.decision);
  switch (report_.decision.verdict) {
    case policy::Verdict::Reject:
      return refuse(admission_result);
    case policy::Verdict::Delay:
      return wait_in_queue();
    case policy::Verdict::Forward:
      break;
  }
  return pass_on();
}

net::Task<Exchange::Ending> Exchange::pass_on() {
  const auto* route = report_.route ? &config_.routes[*report_.route] : nullptr;
  const bool last = route != nullptr && is_final_recipient(*route, buffers_->head);
  if (route != nullptr && !route->respond && !last) {
    auto& pool = snapshot_.pool(route->upstream);
    const auto pause =
        route->honor_retry_after ? pool.server_group().paused_until() - latest_ : base::Duration{0};
    return pause > base::Duration{0} ? answer_paused(pause) : forward(pool);
  }
  admission_.keep();
  if (last) return answer_max_forwards();
  if (admission_.settlements().due()) settle(route != nullptr ? route->respond->status : 404, nullptr);
  if (route == nullptr) return error(404, "no route matches this request");
  return answer({.status = route->respond->status,
                 .content_type = route->respond->content_type,
                 .body = route->respond->body,
                 .fields = buffers_->rate_limit_headers,
                 .no_store = false});
}

net::Task<Exchange::Ending> Exchange::answer_max_forwards() {
  const auto said = max_forwards_answer(buffers_->head);
  if (admission_.settlements().due()) settle(said.status, nullptr);
  if (!said.what.empty()) return error(said.status, said.what);
  return answer({.status = said.status, .fields = buffers_->rate_limit_headers, .no_store = false});
}

void Exchange::note_rate_limit_headers(const policy::Decision& decision) {
  buffers_->rate_limit_headers.clear();
  if (decision.rule == nullptr) return;
  append_rate_limit_headers(buffers_->rate_limit_headers, decision, config_.server,
                            admission_.reset_at(decision));
}

net::Task<Exchange::Ending> Exchange::refuse(const AdmissionResult& admission_result) {
  if (admission_result.objection) {
    if (admission_result.objection.excess)
      note_client_error(observe::ClientError::Excess, kTooManyParameters);
    if (policy::is_about_path(admission_result.objection))
      note_client_error(observe::ClientError::BadHead, kAmbiguousPath);
    if (admission_result.objection.token) note_token_fault(*admission_result.objection.token);
    buffers_->text.clear();
    append_objection(buffers_->rate_limit_headers, buffers_->text, admission_result.objection,
                     config_.client);
    return answer({.status = policy::status_of(admission_result.objection),
                   .body = buffers_->text,
                   .fields = buffers_->rate_limit_headers});
  }
  if (admission_result.closed != nullptr) {
    report_.failure = "store_closed";
    return error(503, "the limiter's store cannot be reached; please retry");
  }
  return refuse_by(*admission_result.decision.rule, admission_result.decision.outcome.retry_after);
}

net::Task<Exchange::Ending> Exchange::refuse_by(const policy::Rule& rule, base::Duration retry_after) {
  auto& buffers = *buffers_;
  buffers.text.clear();
  const auto refusal =
      append_refusal(buffers.rate_limit_headers, buffers.text, rule, retry_after, buffers.head.fields);
  return answer({.status = refusal.status,
                 .content_type = refusal.content_type,
                 .body = buffers.text,
                 .fields = buffers.rate_limit_headers});
}

net::Task<Exchange::Ending> Exchange::error(unsigned status, std::string_view what) {
  buffers_->text.clear();
  append_error(buffers_->rate_limit_headers, buffers_->text, status, what, config_.client);
  return answer({.status = status, .body = buffers_->text, .fields = buffers_->rate_limit_headers});
}

// The answer settles what was charged for it; what is told of the limits is how they stand then.
void Exchange::settle(unsigned status, const http::ResponseHead* head) {
  if (admission_.settlements().answered(status, head, latest_))
    note_rate_limit_headers(admission_.current_decision());
}

// Sends an answer of our own, at once: what is still to come of the request's body is no reason to wait.
net::Task<Exchange::Ending> Exchange::answer(http::Answer answer) {
  answer.keep_alive = buffers_->head.framing == http::Framing::None || drop_body();
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
  auto& buffers = *buffers_;
  if (!buffers.request_id.empty()) return;
  const auto* said = buffers.request.client.peer_trusted
                         ? http::find_field(buffers.head.fields, http::FieldId::XRequestId)
                         : nullptr;
  if (said != nullptr && !said->hop_by_hop && !said->value.empty())
    buffers.request_id = said->value;
  else
    worker_.make_request_id(buffers.request_id);
}

net::Task<Exchange::Ending> Exchange::send(const http::Answer& in_step) {
  if (session_.client.owes_write()) return net::Task<Ending>::ended(give_up_writing(!session_.has_gone()));
  auto& buffers = *buffers_;
  name_request();
  const auto& head = buffers.head;
  auto answer = in_step;
  answer.keep_alive = in_step.keep_alive && head.keep_alive && !session_.is_leaving();
  answer.omit_body = head.method == "HEAD";
  answer.client_minor_version = head.minor_version;
  answer.date = date();
  answer.request_id = buffers.request_id;
  report_.status = answer.status;
  if (!answer.omit_body) report_.body_out = answer.body.size();
  buffers.out.clear();
  http::write_answer(buffers.out, answer);
  net::ErrorCode ec;
  const auto sent = session_.client.try_write(buffers.out, {}, ec);
  if (!ec && sent < buffers.out.size()) return send_rest(sent, answer.keep_alive);
  return net::Task<Ending>::ended(answered_with(ec, sent, answer.keep_alive));
}

net::Task<Exchange::Ending> Exchange::send_rest(std::size_t sent, bool keep_alive) {
  session_.arm(config_.server.write_timeout);
  const auto& out = buffers_->out;
  const auto ec = co_await session_.client.write_rest(std::string_view(out).substr(sent));
  latest_ = worker_.clock.now();
  co_return answered_with(ec, out.size(), keep_alive);
}

Exchange::Ending Exchange::answered_with(const net::ErrorCode& ec, std::size_t sent, bool keep_alive) {
  worker_.counters.bytes_out.add(sent);
  if (ec) return give_up_writing(session_.late());
  if (!keep_alive) return Ending::Linger;
  const bool whole = buffers_->head.framing == http::Framing::None || request_body_->complete();
  return whole ? Ending::KeepAlive : Ending::DropRest;
}

// Drops what of the body is at hand. Whether the next request can follow: once the rest was dropped as well,
// where some is to come.
bool Exchange::drop_body() {
  auto& body = *request_body_;
  const auto& head = buffers_->head;
  if (body.complete()) return true;
  if (head.content_length > kDiscarded || upload_) return false;
  body.allow(kDiscarded);
  const auto status = body.drop();
  if (status == BodySource::Status::End) return true;
  // Who waits for our word before the body may send it or not (RFC 9110 §10.1.1).
  return status == BodySource::Status::NeedBytes && !head.expects_continue;
}

}  // namespace weir::proxy
