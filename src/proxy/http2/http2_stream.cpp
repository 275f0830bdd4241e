#include "proxy/http2/http2_stream.hpp"

#include "proxy/ask/ask_service.hpp"
#include "proxy/client/head_refusal.hpp"
#include "proxy/client/session.hpp"
#include "proxy/exchange/exchange.hpp"
#include "proxy/exchange/scoped_cancel_target.hpp"
#include "proxy/http2/http2_connection.hpp"

#include "weir/http/forwarding.hpp"
#include "weir/http/grpc.hpp"
#include "weir/http/websocket_handshake.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace weir::proxy {

namespace {

std::string new_websocket_key() {
  std::array<std::uint8_t, 16> chance{};
  ::arc4random_buf(chance.data(), chance.size());
  return http::websocket_key(chance);
}

}  // namespace

Http2Stream::Http2Stream(Http2Connection& connection, std::int32_t id)
    : ClientStream(connection.worker(), watch_, connection.session().peer),
      connection_(connection),
      id_(id),
      watch_(connection.worker().watchdog, *this),
      request_(std::in_place, connection.worker().config().server.max_head),
      inbox_(connection.worker().blocks),
      arrival_(connection.worker().executor),
      room_(connection.worker().executor) {}

net::Task<void> Http2Stream::serve() {
  serving_ = true;
  co_await wait_out_pause();
  if (disconnected_) co_return;
  // Refuses the request: a new process decides from now on. The client repeats the request on another
  // connection (RFC 9113 §8.7).
  if (worker.is_handing_over()) {
    connection_.leave();
    refused_ = true;
    co_return;
  }
  connection_.note_taken(id_);
  if (const auto settings = connection_.session().ask_settings()) {
    AskService service(*this, settings);
    if (const auto fault = read_head(service.buffers())) {
      co_await refuse(*fault);
    } else {
      const ScopedCancelTarget cancel_target(ask_, service);
      ending_ = co_await service.run();
    }
    co_return forget_exchange();
  }
  Exchange exchange(*this);
  if (const auto fault = read_head(exchange.buffers())) {
    co_await refuse(*fault);
  } else {
    const ScopedCancelTarget cancel_target(exchange_, exchange);
    ending_ = co_await exchange.run();
  }
  if (tunnel_) end_tunnel();
  forget_exchange();
}

void Http2Stream::forget_exchange() noexcept {
  sink_.reset();  // the sink must not outlive the exchange, to whose memory it refers
  out_ = nullptr;
}

// Waits while weir hands the state of the limiters over to a new process.
net::Task<void> Http2Stream::wait_out_pause() {
  if (worker.decision_pause.is_on()) connection_.leave();
  while (worker.decision_pause.is_on() && !disconnected_ && !watch_.late()) {
    DecisionPause::Waiter waiter(worker.decision_pause, worker.executor);
    const ScopedCancelTarget cancel_target(pause_waiter_, waiter);
    co_await waiter.wait();
  }
}

// Ends a WebSocket. If weir itself ended it, for example because of a refused message, sends END_STREAM. If
// the WebSocket broke off, or END_STREAM was not sent, finish() resets the stream with CANCEL (RFC 8441 §5).
void Http2Stream::end_tunnel() noexcept {
  if (ending_ == Ending::Answered) tunnel_->shutdown_send();
  if (!answered_ || ending_ == Ending::Abort) ending_ = Ending::Close;
  tunnel_.reset();
}

void Http2Stream::finish(bool ended) noexcept {
  using http::Http2Error;
  finished_ = true;
  tunnel_.reset();
  sink_.reset();
  watch_.disarm();
  if (closed_) return;
  // the GOAWAY closes the stream, so no reset is needed
  if (refused_ && connection_.codec().excludes(id_)) return;
  if (refused_)
    reset(Http2Error::RefusedStream);
  else if (!ended || ending_ == Ending::Abort)
    reset(Http2Error::Internal);
  else if (ending_ == Ending::Close)
    reset(Http2Error::Cancel);
  else if (!ended_)
    reset(Http2Error::None);  // tells the client to stop sending (RFC 9113 §8.1)
}

void Http2Stream::reset(http::Http2Error error) noexcept {
  try {
    connection_.reset(id_, error);
  } catch (const std::bad_alloc&) {
    connection_.fail();
  }
}

void Http2Stream::note_disconnected() noexcept {
  disconnected_ = true;
  arrival_.notify();
  room_.notify();
  if (sink_) sink_->wake();
  if (tunnel_) tunnel_->note_progress();
  if (pause_waiter_ != nullptr) pause_waiter_->wake();
  watch_.note_disconnected();
}

void Http2Stream::note_room() noexcept {
  room_.notify();
}

void Http2Stream::cancel_all() noexcept {
  cancel();
  if (exchange_ != nullptr) exchange_->cancel();
  if (ask_ != nullptr) ask_->cancel();
  if (pause_waiter_ != nullptr) pause_waiter_->wake();
}

void Http2Stream::cancel() noexcept {
  arrival_.cancel();
  room_.cancel();
  if (sink_) sink_->cancel();
  if (tunnel_) tunnel_->cancel_sending();
}

void Http2Stream::close() noexcept {
  if (!closed_) reset(http::Http2Error::Cancel);
}

// Reads the request's head. If the whole body has arrived with the head, adds a Content-Length, so that weir
// can forward the request at once.
std::optional<http::Fault> Http2Stream::read_head(ExchangeBuffers& buffers) {
  out_ = &buffers.out;
  auto& head = buffers.head;
  const bool opens_websocket = request_->opens_websocket();
  head_text_ = request_->head(ended_ ? std::optional(arrived_.size()) : std::nullopt,
                              opens_websocket ? new_websocket_key() : std::string());
  if (request_->is_too_large()) return http::Fault{431, "the request head is too large"};
  if (const auto* const fault = request_->fault()) return http::Fault{400, fault};
  if (auto fault = http::parse_request_head(head_text_, head)) return fault;
  request_.reset();
  head.http2 = true;
  head.opens_websocket = opens_websocket;
  const auto framing = head.framing == http::Framing::Chunked ? http::Framing::UntilClose : head.framing;
  body_ = &source_.emplace(static_cast<net::ByteReader&>(*this), inbox_, framing, head.content_length);
  if (unconsumed() == 0) return std::nullopt;
  char* const at = inbox_.space();
  const auto size = take_arrived(at, inbox_.room());
  inbox_.received(size);
  worker.counters.bytes_in.add(size);
  return std::nullopt;
}

net::Task<void> Http2Stream::refuse(http::Fault fault) {
  HeadRefusal refusal(worker, peer, head_text_, "HTTP/2");
  auto answer = refusal.answer(fault);
  std::string fields(answer.fields);
  if (request_->is_grpc()) http::make_trailers_only(answer, fields);
  const auto body_size = answer.body.size();
  auto sent = try_answer(answer);
  if (!sent) {
    watch_.arm(worker.config().server.write_timeout);
    sent = co_await finish_answer();
  }
  refusal.report(fault, *sent ? 0 : body_size);
  ending_ = *sent ? Ending::Abort : Ending::Answered;
}

bool Http2Stream::is_secure() const noexcept {
  return connection_.session().is_secure();
}

std::string_view Http2Stream::listener_name() const noexcept {
  return connection_.session().listener_name();
}

std::string_view Http2Stream::certificate() {
  return connection_.session().certificate();
}

std::optional<http::ConnectionEnds> Http2Stream::ends() const {
  return connection_.session().ends();
}

// Returns the unacknowledged octets of all streams together, because the socket does not distinguish streams.
std::size_t Http2Stream::unacknowledged() const noexcept {
  return connection_.session().client.unacknowledged();
}

net::Task<net::ErrorCode> Http2Stream::send_continue() {
  fields_.clear();
  fields_.add_status(100);
  return send_now();
}

net::Task<net::ErrorCode> Http2Stream::send_interim(const http::ResponseHead& head) {
  fields_.clear();
  fields_.add_status(head.status);
  fields_.add_forwarded(head.fields);
  return send_now();
}

// Sends an interim answer. Waits while the connection's output buffer is full, because a server may send an
// unlimited number of interim answers.
net::Task<net::ErrorCode> Http2Stream::send_now() {
  net::ErrorCode ec;
  while (!ec && !disconnected_ && !connection_.has_failed() && connection_.is_full()) {
    connection_.want_room();
    ec = co_await room_.wait();
  }
  if (disconnected_ || connection_.has_failed()) ec = net::asio::error::connection_reset;
  if (ec) co_return ec;
  connection_.codec().send_interim(id_, fields_);
  connection_.pump();
  co_return ec;
}

std::optional<net::ErrorCode> Http2Stream::try_answer(http::Answer answer) {
  // drop() takes the part of the body that has arrived. Only octets that were taken appear in the metrics and
  // the access log.
  if (answer.keep_alive && body_ != nullptr && !body_->complete()) static_cast<void>(body_->drop());
  answer.keep_alive = true;
  out_->clear();
  http::write_answer(*out_, answer);
  const std::string_view text = *out_;
  const auto lines = text.find("\r\n") + 2;
  const auto body = text.substr(text.find("\r\n\r\n") + 4);
  fields_.clear();
  fields_.add_status(answer.status);
  fields_.add_lines(text.substr(lines));
  auto& sink = sink_.emplace(connection_, id_, fields_, body.size(), disconnected_);
  if (!body.empty()) sink.add(body);
  sink.end({});
  net::ErrorCode ec;
  const bool flushed = sink.flush(ec);
  worker.counters.bytes_out.add(text.size());
  if (!ec && !flushed) return std::nullopt;
  return ec;
}

net::Task<net::ErrorCode> Http2Stream::finish_answer() {
  return sink_->wait_for_room();
}

BodySink& Http2Stream::begin_answer(const http::ResponseHead& head, const AnswerAdditions& additions) {
  fields_.clear();
  fields_.add_status(head.status);
  fields_.add_forwarded(head.fields);
  if (!fields_.contains("date")) fields_.add("date", additions.date);
  fields_.add_lines(additions.fields);
  std::optional<std::uint64_t> length;
  if (head.length_known && head.status != 204) {
    std::string digits;
    http::append_number(digits, head.content_length);
    fields_.add("content-length", digits);
  }
  if (head.framing == http::Framing::None) length = 0;
  if (head.framing == http::Framing::Length) length = head.content_length;
  if (additions.trailers_may_follow) length.reset();
  return sink_.emplace(connection_, id_, fields_, length, disconnected_);
}

// Opens a WebSocket. No other protocol is possible, because HTTP/2 has no Upgrade (RFC 9113 §8.6).
net::Task<net::ErrorCode> Http2Stream::send_upgrade(const http::ResponseHead& head, std::string_view,
                                                    std::string_view fields) {
  fields_.clear();
  fields_.add_websocket_response(head.fields);
  fields_.add_lines(fields);
  auto& sink = sink_.emplace(connection_, id_, fields_, std::nullopt, disconnected_);
  net::ErrorCode ec;
  static_cast<void>(sink.flush(ec));
  tunnel_.emplace(connection_, *this, sink);
  worker.counters.bytes_out.add(sink.sent());
  return net::Task<net::ErrorCode>::ended(ec);
}

ClientStream::Octets Http2Stream::octets() noexcept {
  return {*tunnel_, inbox_};
}

void Http2Stream::on_field(std::string_view name, std::string_view value) {
  if (request_) request_->add(name, value);
  if (request_ && request_->size() > Http2Connection::kMostHeads * worker.config().server.max_head)
    connection_.note_huge_head();
}

void Http2Stream::on_head() {
  head_arrived_ = true;
  connection_.note_ready();
}

// Stores octets of the body for the exchange. Once the exchange has ended, drops the octets instead, and
// returns them to the connection's flow-control window.
void Http2Stream::on_data(std::string_view octets) {
  connection_.note_data(octets.size());
  if (finished_) return connection_.consume(id_, octets.size());
  if (taken_ >= arrived_.size() / 2) arrived_.erase(0, std::exchange(taken_, 0));
  arrived_ += octets;
  arrival_.notify();
}

void Http2Stream::on_end_sent() {
  answered_ = true;
  if (sink_) sink_->note_end();
  if (tunnel_) tunnel_->note_progress();
}

void Http2Stream::on_end() {
  ended_ = true;
  arrival_.notify();
}

void Http2Stream::on_closed(http::Http2Error error) {
  closed_ = true;
  if (!head_arrived_) connection_.note_head_ended();
  const bool complete = error == http::Http2Error::None && ended_ && answered_;
  if (!finished_ && !complete) note_disconnected();
}

std::size_t Http2Stream::give(char* at, std::size_t room, bool& ended) noexcept {
  const auto given = sink_ ? sink_->give(at, room, ended) : 0;
  if (given != 0) connection_.note_sent(given, given == room);
  if (tunnel_) tunnel_->note_progress();
  return given;
}

// Copies octets that have arrived, and returns their number. The client may then send the same number of
// further octets.
std::size_t Http2Stream::take_arrived(char* at, std::size_t size) {
  size = std::min(size, unconsumed());
  std::memcpy(at, arrived_.data() + taken_, size);
  taken_ += size;
  if (taken_ == arrived_.size()) {
    arrived_.clear();
    taken_ = 0;
  }
  connection_.consume(id_, size);
  return size;
}

std::size_t Http2Stream::try_read(char* at, std::size_t size, net::ErrorCode& ec) {
  ec = {};
  if (unconsumed() != 0) return take_arrived(at, size);
  if (disconnected_)
    ec = net::asio::error::connection_reset;
  else if (ended_)
    ec = net::asio::error::eof;
  else
    ec = net::asio::error::would_block;
  return 0;
}

net::Task<std::size_t> Http2Stream::read_some(char* at, std::size_t size, net::ErrorCode& ec) {
  auto count = try_read(at, size, ec);
  while (ec == net::asio::error::would_block) {
    ec = co_await wait_readable();
    if (!ec) count = try_read(at, size, ec);
  }
  co_return count;
}

void Http2Stream::trim() noexcept {
  if (unconsumed() == 0) std::string().swap(arrived_);
}

}  // namespace weir::proxy
