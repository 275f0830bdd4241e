// The part of an exchange that speaks with an upstream.
#include "proxy/admission/rate_limit_headers.hpp"
#include "proxy/client/session.hpp"
#include "proxy/exchange/body_inspector.hpp"
#include "proxy/upstream/attempt.hpp"
#include "proxy/upstream/upload.hpp"

#include "weir/http/chunked.hpp"
#include "weir/http/forwarding.hpp"
#include "weir/http/upgrade.hpp"
#include "weir/net/signal.hpp"

#include <algorithm>
#include <exception>

#include <sys/socket.h>

namespace weir::proxy {

namespace {

// Whether what came of an answer's body is none from its first octet on.
bool begins_badly(const http::ResponseHead& head, std::string_view body) noexcept {
  return head.framing == http::Framing::Chunked &&
         http::ChunkDecoder(http::ChunkDecoder::Sender::Server).next(body).status ==
             http::ChunkDecoder::Status::Bad;
}

// Makes the kernel end a connection with a reset, so that an answer delimited by its end does not look
// complete.
void end_by_reset(net::Stream& stream) noexcept {
  const linger now{1, 0};
  ::setsockopt(stream.native_handle(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

// Writes the request for the upstream, and takes what of the body came with it.
void Exchange::write_request(Attempt& attempt) {
  auto& buffers = context_.buffers;
  context_.name_request();
  if (buffers.head.wants_upgrade)
    attempt.upgrade =
        http::protocol_to_ask(buffers.head, context_.config.routes[*context_.report.route].upgrades);
  write_head(attempt, {});
  attempt.whole = buffers.head.framing == http::Framing::None;
  if (buffers.head.framing == http::Framing::Length &&
      context_.request_body->at_hand() >= buffers.head.content_length)
    attempt.whole = context_.request_body->take(attempt.body) == BodySource::Status::Piece;
  if (attempt.whole) {
    std::string_view nothing;
    (void)context_.request_body->take(nothing);  // meets the end
  }
}

// `host`: the server's, for a request that names none.
void Exchange::write_head(const Attempt& attempt, std::string_view host) {
  auto& buffers = context_.buffers;
  buffers.out.clear();
  http::write_request_head(
      buffers.out, buffers.head,
      {.peer = context_.session.peer == base::IpAddress() ? std::string_view() : context_.session.peer_text,
       .proto = context_.session.is_secure() ? "https" : "http",
       .request_id = buffers.request_id,
       .peer_trusted = buffers.request.client.peer_trusted,
       .told_by_forwarded = context_.config.client.address_field == policy::AddressField::Forwarded,
       .add_forwarded = context_.config.server.forwarded,
       .underscores = context_.config.server.underscores_in_headers,
       .trusted_fields = &context_.config.client.trusted_fields,
       .whole_and_plain = context_.admission.settlements().want_body(),
       .upgrade = attempt.upgrade,
       .host = host});
}

// Whatever its ending, an exception too: the upload, which works on this exchange, ends first.
net::Task<Ending> Exchange::forward(upstream::Pool& pool) {
  Attempt attempt;
  auto ending = Ending::Close;
  std::exception_ptr thrown;
  try {
    write_request(attempt);
    begin_attempts(pool, attempt);
    bool answered = false;
    for (bool again = true; again;) {
      answered = false;
      bool leased = !pool.server_group().queue().is_awaited() && lease_server(pool, attempt);
      if (!leased) leased = co_await wait_for_server(pool, attempt);
      if (!leased) note_full_servers(attempt);
      if (!leased) break;
      if (context_.buffers.head.authority.empty()) write_head(attempt, lease_.member().host());
      bool connected = lease_.connected();
      if (connected)
        tallies().reused.add();
      else
        connected = co_await connect(pool, attempt);
      if (context_.watch.left()) break;
      if (!connected) continue;
      answered = co_await exchange_heads(pool, attempt);
      again = answered && is_failed_answer(pool, attempt);
      if (again) note_answer();
      if (upload_ && (again || !answered)) co_await end_upload();
      if (!answered)
        again = co_await prepare_retry(pool, attempt);
      else if (again)
        again = co_await repeat(pool, attempt);
      if (!lease_) answered = false;  // the answer was let go for another server's, and there is none
    }
    if (answered && context_.buffers.response.status == 101) {
      note_answer();
      ending = co_await tunnel(pool, attempt);
    } else if (answered)
      ending = co_await relay_answer(pool, attempt);
    else
      ending = co_await give_up(attempt);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (upload_) co_await end_upload();
  if (thrown) std::rethrow_exception(thrown);
  co_return ending;
}

// Sends the request and waits for the head of the answer.
net::Task<bool> Exchange::exchange_heads(upstream::Pool& pool, Attempt& attempt) {
  auto& buffers = context_.buffers;
  auto& stream = lease_.stream();
  upload_.reset();  // of the attempt before, which has ended
  context_.upload_begun = false;
  context_.report.sent = context_.now;
  ++attempt.servers;
  attempt.silent = attempt.heard = attempt.client_ended = false;
  attempt.status = 502;
  arm(attempt, pool.settings().timeouts.response);
  net::ErrorCode ec;
  const auto sent = stream.try_write(buffers.out, attempt.body, ec);
  // A connection that had waited may be gone: then nobody has a byte of it.
  attempt.handed_over = attempt.handed_over || sent > 0 || !ec;
  if (attempt.handed_over) context_.admission.keep();
  const bool all = attempt.whole && sent == buffers.out.size() + attempt.body.size();
  if (!ec && !all) start_upload(pool, attempt, sent);
  if (!ec && all && !repeatable(attempt)) release_body(context_.buffers);
  // A server that closes its end early, or takes no more, may have answered before; so even now the answer is
  // read.
  const bool reads_on = context_.admission.needs_answer(pool.settings().timeouts.abandoned);
  context_.watch.keep_waiting_without_client(reads_on);
  context_.watch.begin_cancellable_wait();
  buffers.answer.release();
  std::size_t searched = 0;
  unsigned pieces = 0;
  auto state = look_at_answer(attempt, searched);
  while (state == HeadState::Missing || state == HeadState::Interim) {
    if (state == HeadState::Interim) {
      attempt.heard = true;
      ec = co_await relay_interim(attempt);
      attempt.client_broken = attempt.client_broken || ec.failed();
      attempt.client_ended = ec && (context_.watch.late() || context_.watch.left() || !reads_on);
      if (attempt.client_ended) break;
      ec = {};
      co_await net::Pause(context_.worker.executor);  // there is no end to how many may come
      if (context_.watch.late() || context_.watch.left()) ec = net::asio::error::operation_aborted;
    } else {
      char* at = buffers.answer.space();
      const auto count = stream.try_read(at, buffers.answer.room(), ec);
      buffers.answer.received(count);
      if (ec == net::asio::error::would_block) ec = co_await stream.wait_readable();
      if (!ec && ++pieces % Relay::kPiecesInTurn == 0) {
        co_await net::Pause(context_.worker.executor);
        if (context_.watch.late() || context_.watch.left()) ec = net::asio::error::operation_aborted;
      }
    }
    if (ec && continue_is_overdue()) {
      const bool prompted = co_await prompt_client(attempt);
      if (prompted) ec = {};
    }
    if (ec) note_silence(attempt);
    if (ec) break;
    state = look_at_answer(attempt, searched);
  }
  context_.watch.end_cancellable_wait();
  context_.watch.keep_waiting_without_client(false);
  if (state != HeadState::Whole) context_.read_clock();
  co_return state == HeadState::Whole;
}

// Reads the answer's head where it is whole; `searched`: where its end was looked for already.
Exchange::HeadState Exchange::look_at_answer(Attempt& attempt, std::size_t& searched) {
  auto& buffers = context_.buffers;
  auto& answer = buffers.answer;
  const auto most = context_.config.server.max_head;
  const auto come = answer.unread().size();
  const auto size = http::find_answer_head_end(answer.unread(), searched);
  const bool too_large = size > most || (size == 0 && come >= most);
  if (size == 0 || too_large) {  // what is no head at all is not a large one, nor will it be one
    const auto begun = answer.unread().substr(0, size != 0 ? size : come);
    if (const auto fault = http::find_early_answer_fault(begun, too_large ? 0 : searched)) {
      attempt.what = fault->what;
      return HeadState::Faulty;
    }
  }
  if (too_large) {
    attempt.oversized = true;
    attempt.what = "the upstream's answer has too large a head";
    return HeadState::Faulty;
  }
  searched = size != 0 ? 0 : come;
  if (size == 0)  // the upload may have failed before there was a wait to be ended
    return body_failed() ? HeadState::Faulty : HeadState::Missing;
  answer.make_room_behind(size);
  const bool to_head = buffers.head.method == "HEAD";
  const auto fault = http::parse_response_head(answer.unread().substr(0, size), to_head, buffers.response);
  if (fault) {
    attempt.oversized = fault->status == 431;
    attempt.what = fault->what;
  }
  if (fault || (buffers.response.status == 101 && !may_upgrade(attempt))) return HeadState::Faulty;
  if (buffers.response.status < 200 && buffers.response.status != 101) {
    answer.use(size);
    return HeadState::Interim;
  }
  answer.use_and_pin(size);
  if (begins_badly(buffers.response, answer.unread())) {  // nobody has a byte of it: it may come from another
    attempt.what = "the upstream's answer is malformed";
    return HeadState::Faulty;
  }
  context_.report.server_status = buffers.response.status;
  context_.now = context_.report.answered = context_.worker.clock.now();
  return HeadState::Whole;
}

// The server has answered, as far as that was wanted. It is said of it as it is now.
void Exchange::note_answer() noexcept {
  if (!lease_.moved()) lease_.member().answered(context_.report.sent, context_.now);
}

// One that comes for so long is an answer, though it may have no end (a stream of events).
void Exchange::note_lasting_answer(const upstream::Pool& pool) noexcept {
  if (context_.worker.clock.now() - context_.report.answered >= pool.settings().timeouts.response)
    note_answer();
}

// The connection ended, or the wait did, before the head of an answer was whole.
void Exchange::note_silence(Attempt& attempt) {
  const bool nothing_came = context_.buffers.answer.empty() && !attempt.heard;
  attempt.silent = nothing_came;
  attempt.status = context_.watch.late() ? 504 : 502;
  attempt.what = context_.watch.late() ? "the upstream did not answer in time"
                 : nothing_came        ? "the upstream closed the connection without an answer"
                                       : "the upstream's answer ended within its head";
}

net::Task<Ending> Exchange::relay_answer(upstream::Pool& pool, Attempt& attempt) {
  auto& buffers = context_.buffers;
  const bool request_sent = is_request_sent();
  if (request_sent) release_body(context_.buffers);  // no other server is asked after this
  const auto form =
      http::response_form(buffers.head, buffers.response,
                          buffers.head.keep_alive && !context_.session.is_leaving() && request_sent);
  if (buffers.response.status == 429 && context_.config.routes[*context_.report.route].honor_retry_after)
    note_pause(pool);
  context_.settle(buffers.response.status, &buffers.response);
  buffers.out.clear();
  keep_stricter(buffers.response.fields, buffers.rate_limit_headers);
  http::write_response_head(buffers.out, buffers.response, form, buffers.rate_limit_headers, context_.date());
  context_.report.status = buffers.response.status;
  BodySource body(lease_.stream(), buffers.answer, buffers.response.framing, buffers.response.content_length,
                  BodySource::kUnbounded, http::ChunkDecoder::Sender::Server);
  Relay relay(body, context_.session.client, form.framing, buffers.out,
              context_.admission.settlements().watch());
  auto need = relay.advance();
  if (need == Relay::Need::Bytes || need == Relay::Need::Room) need = co_await relay_rest(pool, relay, need);
  context_.worker.counters.bytes_out.add(relay.sent());
  context_.report.body_out = body.received();
  if (need != Relay::Need::Nothing) {
    const bool until_close = form.framing == http::Framing::UntilClose;
    const bool abandoned = context_.watch.left() || need == Relay::Need::SinkBroken ||
                           (need == Relay::Need::Room && !body_failed());
    const auto ending = co_await abort_answer(attempt, relay, need, until_close);
    if (abandoned && is_request_sent()) co_await drain_answer(pool, body);
    co_return ending;
  }
  note_answer();
  const bool in_step = buffers.response.keep_alive && buffers.answer.empty() && request_sent &&
                       buffers.response.framing != http::Framing::UntilClose;
  if (in_step) lease_.keep();
  co_return form.keep_alive ? Ending::KeepAlive : Ending::Linger;
}

// The answer did not reach the client whole: `need` says why. `until_close`: its end would look like one.
net::Task<Ending> Exchange::abort_answer(Attempt& attempt, const Relay& relay, Relay::Need need,
                                         bool until_close) {
  if (need == Relay::Need::SinkBroken || need == Relay::Need::Room) note_answer();  // so far it was well
  const bool gone = need == Relay::Need::SinkBroken || context_.watch.left();
  if (gone || (need == Relay::Need::Room && !body_failed())) {
    const bool late = context_.watch.late();
    context_.report.failure = slow_ ? "slow_read" : late ? "write_timeout" : "client_left";
    context_.worker.counters
        .client_errors(slow_  ? observe::ClientError::SlowRead
                       : late ? observe::ClientError::WriteTimeout
                              : observe::ClientError::Left)
        .add();
    return net::Task<Ending>::ended(Ending::Abort);
  }
  // The server may have waited for a body that its client waited with: whose silence it was nobody knows.
  const bool owed = upload_ && upload_->expectant;
  if (!owed && count_failure() && !lease_.moved())
    lease_.member().failed(context_.report.sent, context_.worker.clock.now());
  if (relay.untouched()) {
    context_.report.answered = {};
    attempt.what = "the upstream's answer is malformed";
    return give_up(attempt);
  }
  context_.report.failure = context_.worker.hard_stop ? "stopped" : "upstream_truncated";
  if (body_failed()) note_body_fault(upload_->fault);
  if (until_close) end_by_reset(context_.session.client);
  return net::Task<Ending>::ended(Ending::Abort);
}

// Whether a client that was waited for takes its answer, and fast enough. The kernel says that there is room
// only once much of its buffer has gone, so what counts is what was acknowledged meanwhile.
bool Exchange::keeps_reading(ClientReading& reading, base::Duration waited, std::uint64_t sent,
                             const net::ErrorCode& ec) {
  const auto unread = context_.session.client.unacknowledged();
  const auto taken = sent > unread ? sent - unread : 0;
  const bool moves = !ec || taken > reading.taken;
  reading.taken = taken;
  reading.stalled = moves ? base::Duration{} : reading.stalled + waited;
  slow_ = reading.pace.counts() && !reading.pace.note(waited, taken);
  if (slow_ || !ec) return !slow_;
  const bool ended = !context_.watch.late() || context_.worker.hard_stop || context_.watch.left();
  if (ended || reading.stalled >= context_.config.server.write_timeout) return false;
  context_.watch.clear_late();
  return true;
}

// Moves what could not be moved at once; what was needed when it ended.
net::Task<Relay::Need> Exchange::relay_rest(upstream::Pool& pool, Relay& relay, Relay::Need need) {
  const auto& server = context_.config.server;
  ClientReading client{.pace = MinRateCheck(server.min_rate)};
  const auto look =
      client.pace.counts() ? std::min(server.min_rate.grace, server.write_timeout) : server.write_timeout;
  for (unsigned pieces = 1; need == Relay::Need::Bytes || need == Relay::Need::Room; ++pieces) {
    const bool reading = need == Relay::Need::Bytes;
    if (pieces % Relay::kPiecesInTurn == 0) {
      co_await net::Pause(context_.worker.executor);
      if (context_.watch.late() || context_.watch.left()) break;
    }
    if (lease_.member().suspect()) note_lasting_answer(pool);
    if (body_failed()) break;  // it may have failed before there was a wait to be ended
    context_.watch.arm(reading ? pool.settings().timeouts.response : look);
    if (reading) context_.watch.begin_cancellable_wait();
    client_stalls_ = !reading;
    const auto since = reading ? base::TimePoint{} : context_.worker.clock.now();
    const auto ec = co_await relay.wait(need);
    context_.read_clock();
    client_stalls_ = false;
    context_.watch.end_cancellable_wait();
    const bool on = reading ? !ec : keeps_reading(client, context_.now - since, relay.sent(), ec);
    if (!on) break;
    need = relay.advance();
  }
  co_return need;
}

// No server answers, or there is no client to answer: says so, and gives back what was charged if no server
// got the request.
net::Task<Ending> Exchange::give_up(Attempt& attempt) {
  if (upload_) co_await end_upload();
  lease_ = {};
  if (!attempt.handed_over) context_.refund();
  if (is_retryable_answer(attempt)) {
    context_.report.failure = "client_left";
    context_.worker.counters.client_errors(observe::ClientError::Left).add();
    co_return attempt.client_broken ? Ending::Abort : Ending::Close;
  }
  context_.watch.clear_late();
  if (context_.worker.hard_stop) {
    context_.report.failure = "stopped";
    co_return co_await reply_.error({503, "this server is stopping; please retry"});
  }
  context_.report.failure = "upstream_failed";
  if (body_failed()) co_return co_await refuse_body(upload_->fault);
  if (attempt.room_after) {
    context_.report.failure = "upstream_crowded";
    http::append_retry_after(context_.buffers.rate_limit_headers,
                             http::retry_after_seconds(*attempt.room_after).value_or(1));
  }
  co_return co_await reply_.error({attempt.status, attempt.what});
}

}  // namespace weir::proxy
