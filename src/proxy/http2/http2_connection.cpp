#include "proxy/http2/http2_connection.hpp"

#include "proxy/client/session.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace weir::proxy {

namespace {

http::Http2Limits limits_of(const Http2Settings& settings, const Worker& worker) {
  auto limits = settings.limits;
  limits.max_head = static_cast<std::uint32_t>(worker.config().server.max_head);
  return limits;
}

}  // namespace

Http2Connection::Http2Connection(Session& session, const Http2Settings& settings, std::size_t uncounted)
    : session_(session),
      worker_(session.worker),
      settings_(settings),
      guard_(settings.resets),
      codec_(*this, limits_of(settings, worker_)),
      output_(session.worker.executor),
      ended_(session.worker.executor),
      progress_(session.worker.executor),
      writer_ended_(session.worker.executor),
      uncounted_(uncounted) {
  worker_.counters.http2_connections_open.add();
}

Http2Connection::~Http2Connection() {
  worker_.counters.http2_connections_open.remove();
}

// Waits for the writer and for all exchanges before it returns or throws, because they use this object.
net::Task<void> Http2Connection::run() {
  std::exception_ptr thrown;
  net::spawn(worker_.executor, write_all(), [this](const std::exception_ptr& failure) {
    if (failure) fail();
    writer_ended_.raise();
    ended_.notify();
  });
  try {
    co_await read_all();
  } catch (...) {
    thrown = std::current_exception();
    fail();
  }
  reads_ = false;
  session_.disarm_deadline();
  for (auto& stream : streams_) stream->note_disconnected();
  while (serving_ != 0) static_cast<void>(co_await ended_.wait());
  net::ErrorCode ignored;
  if (!failed_ && !writing_) static_cast<void>(write_some(ignored));
  output_.notify();
  while (!failed_ && !worker_.hard_stop && (writing_ || has_output()))
    static_cast<void>(co_await ended_.wait());
  stopped_ = true;
  output_.notify();
  session_.client.cancel();
  co_await writer_ended_.wait();
  worker_.counters.http2_streams_open.remove(streams_.size());
  streams_.clear();
  if (thrown) std::rethrow_exception(thrown);
}

net::Task<void> Http2Connection::read_all() {
  last_received_ = worker_.clock.now();
  for (unsigned pieces = 1;; ++pieces) {
    const bool goes_on = take_received();
    begin_streams();
    remove_done();
    net::ErrorCode ec;
    if (!writing_ && !write_some(ec)) output_.notify();
    if (!goes_on || ec || failed_ || codec_.is_over()) co_return;
    if (serving_ != 0 || ready_)
      session_.note_busy();
    else if (!session_.is_idle())
      session_.begin_idling();
    if (!ready_) ec = co_await read_more();
    if (pieces % Relay::kPiecesInTurn == 0 || is_turn_over()) {
      begun_in_turn_ = 0;
      work_in_turn_ = {};
      co_await net::Pause(worker_.executor);
    }
    if (ec && !outlast(ec)) co_return;
  }
}

// Reads octets into the inbox. Returns would_block if none have arrived. Does not count the octets in the
// metric bytes_in: exchanges count the octets of their bodies there, and take_received() counts all others.
net::ErrorCode Http2Connection::receive() {
  net::ErrorCode ec;
  auto& inbox = session_.inbox;
  char* const at = inbox.space();
  const auto count = session_.client.try_read(at, inbox.room(), ec);
  inbox.received(count);
  uncounted_ += count;
  return ec;
}

// Waits for octets. An idle connection releases its buffers first.
//
// While the client does not read, weir does not read either. Otherwise the codec could queue a frame for
// every frame of the client, such as RST_STREAM for a malformed request. The flood guard counts these frames
// only when they are sent.
net::Task<net::ErrorCode> Http2Connection::read_more() {
  auto& client = session_.client;
  net::ErrorCode ec;
  if (writing_) ec = co_await progress_.wait();
  if (ec) co_return ec;
  ec = receive();
  while (ec == net::asio::error::would_block) {
    if (session_.is_quiet()) {
      if (out_.empty()) out_.shrink_to_fit();
      session_.become_quiet();
    }
    ec = co_await client.wait_readable();
    if (!ec) ec = receive();
  }
  co_return ec;
}

// Handles a wait that ended before octets arrived. Returns true if the connection keeps waiting.
bool Http2Connection::outlast(const net::ErrorCode& ec) {
  if (ec != net::asio::error::operation_aborted) failed_ = failed_ || ec != net::asio::error::eof;
  if (ec != net::asio::error::operation_aborted || failed_) return false;
  // When weir stops, the connection stays open until all its requests have ended. Each request ends at its
  // own deadline, so that the client gets an answer.
  if (session_.late() && (serving_ == 0 || !worker_.hard_stop)) {
    if (!std::exchange(last_goaway_queued_, true)) {
      worker_.counters.http2_goaways(observe::Goaway::Idle).add();
      codec_.go_away(http::Http2Error::None);
    }
    return false;
  }
  if (session_.must_leave()) leave();
  return true;
}

// Passes to the codec the octets that have arrived. Returns false if the octets break the connection.
bool Http2Connection::take_received() {
  auto& inbox = session_.inbox;
  if (inbox.empty()) return true;
  last_received_ = worker_.clock.now();
  pinged_ = {};
  data_read_ = 0;
  const auto octets = inbox.unread();
  const bool sound = codec_.receive(octets);
  worker_.counters.bytes_in.add(uncounted_ - std::min(uncounted_, data_read_));
  uncounted_ = 0;
  inbox.use(octets.size());
  return sound;
}

bool Http2Connection::is_turn_over() const noexcept {
  return begun_in_turn_ >= Session::kRequestsInTurn || work_in_turn_ >= Session::kWorkInTurn;
}

// Begins the exchanges of streams whose heads are complete, until the connection's turn is over. Must be
// called after the codec has handled all octets. Then an exchange can use a small body at once if the body
// arrived with the head.
void Http2Connection::begin_streams() {
  if (!ready_) return;
  auto since = worker_.clock.now();
  // No stream is removed during this loop: an exchange may end at once, but only remove_done() removes
  // streams.
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (!streams_[i]->is_ready()) continue;
    if (is_turn_over()) return;
    begin(*streams_[i]);
    const auto now = worker_.clock.now();
    work_in_turn_ += now - since;
    since = now;
  }
  ready_ = false;
}

void Http2Connection::begin(Http2Stream& stream) {
  guard_.note_work();
  ++serving_;
  ++begun_in_turn_;
  try {
    net::spawn(worker_.executor, stream.serve(),
               [this, &stream](const std::exception_ptr& thrown) { end_stream(stream, !thrown); });
  } catch (...) {
    end_stream(stream, false);  // no memory for the exchange, so it did not start
    throw;
  }
}

void Http2Connection::end_stream(Http2Stream& stream, bool ended) noexcept {
  stream.finish(ended);
  --serving_;
  if (serving_ == 0 && reads_ && !ready_) session_.begin_idling();
  if (serving_ == 0) ended_.notify();
  output_.notify();
}

void Http2Connection::remove_done() {
  for (const auto& stream : streams_)
    if (stream->is_done() && stream->unconsumed() != 0) consume(stream->id(), stream->unconsumed());
  const auto removed = std::erase_if(streams_, [](const auto& stream) { return stream->is_done(); });
  worker_.counters.http2_streams_open.remove(removed);
}

http::Http2StreamEvents* Http2Connection::on_stream(std::int32_t id) {
  // `streams_` may have up to twice max_streams elements, because streams that were reset stay there until
  // their exchanges have ended. Beyond that, opens no stream.
  if (streams_.size() >= 2 * std::size_t{settings_.limits.max_streams}) return nullptr;
  streams_.push_back(std::make_unique<Http2Stream>(*this, id));
  head_begun_ = last_received_;
  worker_.counters.http2_streams_open.add();
  return streams_.back().get();
}

void Http2Connection::note_data(std::size_t octets) noexcept {
  data_read_ += octets;
  guard_.note_work();
}

// Moves the codec's frames to the output buffer and wakes the writer. If the codec throws, ends the
// connection, because a codec must not be used again after it has thrown.
void Http2Connection::pump() {
  if (failed_) return;
  try {
    if (!is_full()) codec_.write(out_, sent_ + kMostOutput);
  } catch (...) {
    fail();
    throw;
  }
  output_.notify();
}

void Http2Connection::reset(std::int32_t id, http::Http2Error error) {
  if (failed_) return;
  codec_.reset(id, error);
  output_.notify();
}

void Http2Connection::consume(std::int32_t id, std::size_t octets) {
  if (failed_) return;
  codec_.consume(id, octets);
  output_.notify();
}

// Sends as many frames as the socket accepts. Returns true if no frames are left.
bool Http2Connection::write_some(net::ErrorCode& ec) {
  for (;;) {
    if (!is_full()) codec_.write(out_, sent_ + kMostOutput);
    if (out_.size() == sent_) break;
    const auto sent = session_.client.try_rest(std::string_view(out_).substr(sent_), {}, ec);
    sent_ += sent;
    if (sent != 0) blocked_since_ = {};
    if (ec) return false;
    if (sent_ < out_.size()) return false;
    out_.clear();
    sent_ = 0;
  }
  out_.clear();
  sent_ = 0;
  note_room();
  return true;
}

// Wakes the streams that wait for room in the output buffer.
void Http2Connection::note_room() noexcept {
  if (!std::exchange(room_wanted_, false)) return;
  for (const auto& stream : streams_) stream->note_room();
}

net::Task<void> Http2Connection::write_all() {
  while (!stopped_) {
    static_cast<void>(co_await output_.wait());
    remove_done();
    while (!stopped_ && !failed_) {
      net::ErrorCode ec;
      if (write_some(ec)) break;
      if (ec) fail();
      if (ec) co_return;
      if (!is_blocked()) {
        blocked_since_ = worker_.clock.now();
        unread_ = session_.client.unacknowledged();
      }
      // removes sent octets, so that the buffer does not grow during the wait
      out_.erase(0, std::exchange(sent_, 0));
      writing_ = true;
      const auto ended = co_await session_.client.wait_writable();
      writing_ = false;
      if (ended)
        progress_.cancel();
      else
        progress_.notify();
      if (!ended) blocked_since_ = {};
      ended_.notify();
      note_room();
    }
    if (serving_ == 0 && codec_.is_over()) session_.client.cancel();
    ended_.notify();
  }
}

}  // namespace weir::proxy
