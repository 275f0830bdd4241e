#include "proxy/upstream/upstream_exchange.hpp"

#include "proxy/exchange/body_inspector.hpp"
#include "proxy/upstream/http1_server.hpp"

#include "weir/http/answer.hpp"
#include "weir/http/forwarding.hpp"
#include "weir/http/grpc.hpp"
#include "weir/http/grpc_status.hpp"
#include "weir/http/upgrade.hpp"
#include "weir/http/websocket_handshake.hpp"
#include "weir/net/signal.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace weir::proxy {

// Tries servers until the request has an answer or fails. Waits for the upload even after an exception,
// because the upload uses this object.
net::Task<Outcome> UpstreamExchange::run() {
  Outcome outcome;
  std::exception_ptr thrown;
  try {
    begin_request();
    bool admitted = true;
    if (from_client_ && !attempt_.body.empty()) admitted = co_await admit_messages();
    auto next = admitted ? Next::Try : Next::GiveUp;
    while (next == Next::Try) {
      bool leased = attempt_.lease_at_once();
      if (!leased) leased = co_await attempt_.wait_for_server(priority_);
      if (!leased) attempt_.note_no_server();
      if (!leased) break;
      bool connected = attempt_.reuses_connection();
      if (!connected) connected = co_await attempt_.connect();
      if (context_.watch.left()) break;
      if (!connected) continue;
      const bool answered = co_await exchange_heads();
      if (answered) attempt_.count_answer(context_.buffers.response.status);
      if (answered) next = judge_answer();
      if (upload_ && next != Next::Answer) co_await upload_->end();
      if (!answered) next = judge_failure();
      if (next != Next::Retry) continue;
      const bool again = co_await retry();
      next = again ? Next::Try : answered && attempt_.lease ? Next::Answer : Next::GiveUp;
    }
    if (next == Next::Answer && upload_ && !upload_->is_sent()) {
      // The answer has arrived before the whole body was sent. Lets the upload run once more before the
      // answer is relayed: if the upload can finish now, weir may keep the connection to the server.
      context_.watch.disarm();
      co_await net::Pause(context_.worker.executor);
    }
    std::optional<Outcome> reached;
    if (next == Next::Answer) reached = co_await take_answer();
    if (!reached && upload_) co_await upload_->end();
    outcome = reached ? *reached : give_up();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (upload_) co_await upload_->end();
  if (thrown) std::rethrow_exception(thrown);
  co_return outcome;
}

void UpstreamExchange::cancel() noexcept {
  if (protocol_upgrade_) protocol_upgrade_->cancel();
  if (from_client_) from_client_->cancel();
  if (from_server_) from_server_->cancel();
  if (attempt_.pacing) attempt_.pacing->cancel();
  attempt_.cancel();
}

// Prepares the gates for gRPC messages and writes the request's head. Takes the body from the client's stream
// if the whole body arrived with the head.
void UpstreamExchange::begin_request() {
  auto& head = context_.buffers.head;
  auto& body = context_.client.body();
  context_.name_request();
  // If the client already sends its body, weir does not need the server's 100 Continue.
  const bool sends = body.received() != 0 || !body.at_hand().empty() || body.complete();
  if (head.expects_continue && sends) http::remove_expectation(head);
  attempt_.expects_continue = head.expects_continue;
  if (head.wants_upgrade) attempt_.upgrade = http::protocol_to_ask(head, context_.route()->upgrades);
  if (http::is_grpc(head.fields)) {
    from_client_ = MessageGate::make(context_.worker, context_.buffers, MessageGate::Sender::Client);
    from_server_ = MessageGate::make(context_.worker, context_.buffers, MessageGate::Sender::Server);
  }
  edit_request(context_);
  write_request_head(context_, attempt_, attempt_.pool.settings().host);
  attempt_.whole = head.framing == http::Framing::None;
  if (context_.has_whole_body()) attempt_.whole = body.take(attempt_.body) == BodySource::Status::Piece;
  // Keeps a copy of the body, because an HTTP/2 server may refuse the request after it got a part of the
  // body. weir can then send the request again.
  if (!attempt_.whole && attempt_.pool.settings().protocol != upstream::Protocol::Http1)
    attempt_.copy.begin();
  if (!attempt_.whole) return;
  std::string_view nothing;
  (void)body.take(nothing);  // makes the source reach the end of the body
}

// Waits until weir may forward the messages of a body that came with its head. Returns false if the exchange
// must end instead.
net::Task<bool> UpstreamExchange::admit_messages() {
  auto& watch = context_.watch;
  auto rest = attempt_.body;
  for (;;) {
    rest.remove_prefix(from_client_->admit(rest));
    if (rest.empty()) co_return true;
    if (from_client_->refuses()) attempt_.body_fault.status = kTooManyMessages;
    if (from_client_->refuses()) co_return false;
    context_.read_clock();
    attempt_.arm(from_client_->wait() + attempt_.pool.settings().timeouts.response);
    watch.begin_cancellable_wait();
    const auto ended = co_await from_client_->hold();
    watch.end_cancellable_wait();
    if (!ended && !watch.late() && !watch.left()) continue;
    attempt_.error = {504, "the limit of messages did not admit the call in time"};
    co_return false;
  }
}

// Sends as much of the request as the server accepts without a wait. Starts an upload for the rest.
void UpstreamExchange::send_request() {
  const auto& out = context_.buffers.out;
  const bool hostless = context_.buffers.head.authority.empty() && attempt_.pool.settings().host.empty();
  if (hostless) write_request_head(context_, attempt_, attempt_.lease.member().host());
  upload_.reset();  // the upload of the previous attempt has ended
  context_.upload_begun = false;
  context_.report.sent = context_.now;
  ++attempt_.servers;
  attempt_.silent = attempt_.got_interim = attempt_.continued = attempt_.client_ended = false;
  attempt_.alert.clear();
  attempt_.body_fault = {};
  attempt_.error.status = 502;
  attempt_.arm(attempt_.pool.settings().timeouts.response);
  net::ErrorCode ec;
  const auto sent = attempt_.lease.stream().try_write(out, attempt_.body, ec);
  attempt_.handed_over_before = attempt_.handed_over;
  // The server may have the request, unless sending failed before the first byte. Sending fails so early if a
  // reused connection was already dead.
  attempt_.handed_over = attempt_.handed_over || sent > 0 || !ec;
  if (attempt_.handed_over) context_.admission.keep();
  const bool all = attempt_.whole && sent == out.size() + attempt_.body.size();
  if (!ec && !all) start_upload(sent);
  if (!ec && all && !attempt_.may_need_body()) release_body(context_.buffers);
}

// Starts an upload for the rest of the request. `sent`: how many octets of the head and of `attempt_.body`
// the server has accepted.
void UpstreamExchange::start_upload(std::size_t sent) {
  const std::string_view head = context_.buffers.out;
  const auto of_head = std::min(sent, head.size());
  auto* const gate = attempt_.whole ? nullptr : from_client_.get();
  std::string begun(head.substr(of_head));
  if (attempt_.copy.is_whole()) attempt_.copy.append_to(begun, context_.buffers.head.framing);
  auto upload = std::make_unique<Upload>(context_, attempt_, std::move(begun), gate);
  if (attempt_.whole) context_.client.body().put_back(attempt_.body.substr(sent - of_head));
  upload_ = std::move(upload);
  context_.upload_begun = true;
  try {
    upload_->start();
  } catch (...) {
    upload_.reset();  // the upload did not start, so it would never signal its end
    context_.upload_begun = false;
    throw;
  }
}

// Sends the request and waits for the head of the answer. Returns true if the head arrived. Reads the answer
// even if sending fails, because the server may have answered first.
net::Task<bool> UpstreamExchange::exchange_heads() {
  using State = AnswerHeadReader::State;
  auto& watch = context_.watch;
  send_request();
  const bool reads_on = context_.admission.needs_answer(attempt_.pool.settings().timeouts.abandoned);
  watch.keep_waiting_without_client(reads_on);
  watch.begin_cancellable_wait();
  AnswerHeadReader head(context_, attempt_);
  unsigned pieces = 0;
  auto state = attempt_.body_fault ? State::Faulty : State::Missing;
  while (state == State::Missing || state == State::Interim) {
    net::ErrorCode ec;
    const bool interim = state == State::Interim;
    if (interim) {
      co_await pass_interim(reads_on);
      if (attempt_.client_ended) break;
    } else {
      ec = head.receive();
      if (ec == net::asio::error::would_block) {
        ec = co_await attempt_.lease.stream().wait_readable();
        if (!ec) ec = head.receive();
        if (ec == net::asio::error::would_block) ec = {};
      }
    }
    // Lets other coroutines run, because a server may send any number of interim answers.
    if (!ec && (interim || ++pieces % Relay::kPiecesInTurn == 0)) {
      co_await net::Pause(context_.worker.executor);
      if (watch.late() || watch.left()) ec = net::asio::error::operation_aborted;
    }
    if (ec && upload_ && upload_->is_continue_overdue()) {
      const bool prompted = co_await send_pending_continue();
      if (prompted) ec = {};
    }
    if (ec) note_silence(ec);
    if (ec) break;
    state = head.parse(is_request_sent());
  }
  watch.end_cancellable_wait();
  watch.keep_waiting_without_client(false);
  if (state != State::Whole) context_.read_clock();
  co_return state == State::Whole;
}

// Forwards an interim answer. `reads_on`: weir needs the answer even if the client has disconnected.
net::Task<void> UpstreamExchange::pass_interim(bool reads_on) {
  const auto& watch = context_.watch;
  attempt_.got_interim = true;
  const auto ec = co_await send_interim();
  attempt_.client_broken = attempt_.client_broken || ec.failed();
  attempt_.client_ended = ec && (watch.late() || watch.left() || !reads_on);
}

// Forwards an interim answer, such as 100 or 103, if the client's HTTP version has interim answers (RFC 9110
// §15.2).
net::Task<net::ErrorCode> UpstreamExchange::send_interim() {
  auto& buffers = context_.buffers;
  attempt_.continued = attempt_.continued || buffers.response.status == 100;
  // Suspends the deadline for 100 Continue while a slow client reads the interim answer.
  const bool suspended = upload_ && upload_->suspend_continue_deadline();
  const auto ec = co_await context_.client.send_interim(buffers.response);
  if (ec) co_return ec;
  if (buffers.response.status == 100)
    begin_body();
  else if (suspended && upload_->is_expectant())
    upload_->await_continue();
  co_return ec;
}

void UpstreamExchange::begin_body() noexcept {
  context_.buffers.head.expects_continue = false;
  if (upload_) upload_->begin_body();
}

// Sends 100 Continue to the client if the server did not send it in time. Some servers do not support 100
// Continue, and the client must not wait forever. Sends nothing if the body has just begun to arrive. Returns
// false if the client did not accept the 100 in time.
net::Task<bool> UpstreamExchange::send_pending_continue() {
  upload_->forget_word();
  context_.watch.clear_late();
  if (!upload_->is_expectant()) co_return true;
  attempt_.tallies.prompted.add();
  const bool said = co_await context_.send_continue();
  attempt_.client_broken = attempt_.client_broken || !said;
  attempt_.client_ended = !said;
  begin_body();
  co_return said;
}

// Records why no complete head of an answer arrived: the connection or the wait has ended.
void UpstreamExchange::note_silence(const net::ErrorCode& why) {
  const bool late = context_.watch.late();
  const bool nothing_came = context_.buffers.answer.empty() && !attempt_.got_interim;
  attempt_.silent = nothing_came;
  // With TLS 1.3, weir's side of the handshake is complete before the server checks weir's certificate. So an
  // alert that arrives instead of an answer means that the handshake failed.
  if (nothing_came && net::Stream::was_alerted(why))
    attempt_.alert = "its TLS handshake failed: " + why.message();
  attempt_.error.status = late ? 504 : 502;
  attempt_.error.what = late           ? "the upstream did not answer in time"
                        : nothing_came ? "the upstream closed the connection without an answer"
                                       : "the upstream's answer ended within its head";
}

// Relays the answer. Returns nullopt if the client has received no octet of the answer and will receive none.
net::Task<std::optional<Outcome>> UpstreamExchange::take_answer() {
  if (const auto* const fault = http::websocket_fault(context_.buffers.head, context_.buffers.response)) {
    attempt_.error = {502, fault};
    attempt_.count_failure();
    return net::Task<std::optional<Outcome>>::ended(std::nullopt);
  }
  if (context_.buffers.response.status == 101) {
    attempt_.note_answer();
    protocol_upgrade_.emplace(context_, attempt_);
    return protocol_upgrade_->run();
  }
  relay_.emplace(context_, attempt_, upload_.get(), from_server_.get());
  return relay_->run();
}

// Returns the outcome after no server answered or the client disconnected. Refunds the charges if no server
// got the request.
Outcome UpstreamExchange::give_up() {
  attempt_.lease = {};
  if (!attempt_.handed_over) context_.refund();
  if (attempt_.client_takes_no_answer()) {
    context_.note_client_error(observe::ClientError::Left, "client_left");
    return {.ending = attempt_.client_broken ? Ending::Abort : Ending::Close};
  }
  context_.watch.clear_late();
  if (context_.worker.hard_stop) {
    context_.report.failure = "stopped";
    return {{503, "this server is stopping; please retry"}};
  }
  context_.report.failure = "upstream_failed";
  if (attempt_.body_fault) {
    note_body_fault(context_, attempt_.body_fault);
    return {error_of(attempt_.body_fault)};
  }
  if (attempt_.all_drained) context_.report.failure = "upstream_drained";
  if (attempt_.room_after) {
    context_.report.failure = "upstream_crowded";
    context_.append_retry_after(*attempt_.room_after);
  }
  // 502: the server broke off a gRPC call, so weir settles the charges of the call as for status UNAVAILABLE.
  // 504: a deadline ended the call. Then the charges remain. Otherwise a client could avoid them by a short
  // deadline.
  if (attempt_.error.status == 502) context_.admission.settlements().end_call(http::kGrpcUnavailable);
  return {attempt_.error};
}

}  // namespace weir::proxy
