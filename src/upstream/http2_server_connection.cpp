#include "upstream/http2_server_connection.hpp"

#include "upstream/http2_server_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

namespace weir::upstream {

namespace {

// After this number of reads the connection yields to other connections.
constexpr unsigned kReadsInTurn = 16;

}  // namespace

Http2ServerConnection::Http2ServerConnection(const net::Executor& executor, net::Watchdog& watchdog,
                                             const Settings& settings)
    : executor_(executor), watchdog_(watchdog), settings_(settings), output_(executor) {}

Http2ServerConnection::~Http2ServerConnection() = default;

void Http2ServerConnection::start(Target target) {
  net::spawn(executor_, run(shared_from_this(), std::move(target)), [this](const std::exception_ptr& thrown) {
    if (thrown) fail();
  });
}

void Http2ServerConnection::adopt(std::unique_ptr<net::Stream> stream, std::uint32_t address_changes) {
  stream_ = std::move(stream);
  address_changes_ = address_changes;
  adopt(*stream_);
}

// Starts the two coroutines that read from and write to `octets`. Each of them holds a reference to this
// object.
void Http2ServerConnection::adopt(net::DuplexStream& octets) {
  octets_ = &octets;
  // The connection's flow-control window is as large as possible. Each stream has a window of its own, which
  // bounds the memory. With a smaller window of the connection, clients that do not read could hold up the
  // requests of other clients.
  constexpr std::uint32_t kMostWindow = 0x7fffffff;
  codec_.emplace(static_cast<http::Http2Events&>(*this),
                 http::Http2Limits{.stream_window = Http2ServerStream::kWindow,
                                   .connection_window = kMostWindow,
                                   .max_head = Http2ServerStream::kMostHead},
                 http::Http2Side::Client);
  state_ = State::Greeting;
  net::spawn(executor_, write_all(shared_from_this()), [this](const std::exception_ptr& thrown) {
    if (thrown) fail();
  });
  net::spawn(executor_, read_all(shared_from_this()), [this](const std::exception_ptr& thrown) {
    if (thrown) fail();
  });
}

bool Http2ServerConnection::has_room() const noexcept {
  if (leaving_ || unanswered_ >= kDoubt || streams_.size() >= settings_.max_streams) return false;
  return is_connecting() ||
         (is_open() && codec_->accepts_requests() && streams_.size() < codec_->max_streams());
}

bool Http2ServerConnection::may_send() const noexcept {
  const auto sent =
      std::count_if(streams_.begin(), streams_.end(), [](const auto* each) { return each->is_sent(); });
  return codec_->accepts_requests() && static_cast<std::uint64_t>(sent) < codec_->max_streams();
}

bool Http2ServerConnection::may_meet_idle_close() const noexcept {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const auto* each) { return !each->is_open() || each->may_have_met_idle_close(); });
}

net::Task<void> Http2ServerConnection::run([[maybe_unused]] std::shared_ptr<Http2ServerConnection> self,
                                           Target target) {
  const auto ec = co_await connect(target);
  if (has_ended()) co_return;
  if (ec) co_return end(ec);
  if (!stream_->is_tls() || stream_->protocol() == "h2") co_return adopt(*stream_);
  if (target.requires_http2) {
    fault_ = "it does not speak HTTP/2 (ALPN)";
    co_return end(net::asio::error::no_protocol_option);
  }
  state_ = State::Http1;
  for (auto* const stream : streams_) stream->note_change();
}

net::Task<net::ErrorCode> Http2ServerConnection::connect(const Target& target) {
  address_changes_ = target.location.address_changes;
  const net::Dial::Target to{
      *target.location.addresses, target.location.first, {}, target.member.tls(target.session.get())};
  net::Dial dial(executor_, watchdog_, to, settings_.connect);
  const net::Dial::ScopedCancelTarget held(dial_, dial);
  const auto ec = co_await dial.connect();
  if (has_ended()) co_return ec;
  fault_ = std::move(dial.fault());
  stream_ = dial.take();
  target.member.begin_with(dial.next(), target.location);
  co_return ec;
}

net::Task<void> Http2ServerConnection::read_all(
    [[maybe_unused]] std::shared_ptr<Http2ServerConnection> self) {
  for (unsigned pieces = 1; !has_ended(); ++pieces) {
    net::ErrorCode ec;
    const auto count = octets_->try_read(received_.data(), received_.size(), ec);
    if (ec == net::asio::error::would_block) {
      ec = co_await octets_->wait_readable();
      if (!ec) continue;
    }
    if (ec) co_return end(ec);
    ++arrivals_;
    silent_ = unanswered_ = {};
    pinged_ = false;
    broken_ = !codec_->receive({received_.data(), count});
    note_output();
    const bool greeted = !broken_ && (codec_->accepts_requests() || codec_->peer_goes_away());
    if (state_ == State::Greeting && greeted) note_open();
    leaving_ = leaving_ || broken_;
    if (broken_) co_return;  // the writer sends the last frames and ends the connection
    if (pieces % kReadsInTurn == 0) co_await net::Pause(executor_);
  }
}

net::Task<void> Http2ServerConnection::write_all(
    [[maybe_unused]] std::shared_ptr<Http2ServerConnection> self) {
  while (!has_ended()) {
    codec_->write(out_, kMostOutput);
    if (out_.empty()) {
      if (broken_ || codec_->is_over()) co_return end(net::asio::error::connection_reset);
      static_cast<void>(co_await output_.wait());
      continue;
    }
    net::ErrorCode ec;
    out_.erase(0, octets_->try_rest(out_, {}, ec));
    if (!ec && !out_.empty()) ec = co_await octets_->wait_writable();
    // If sending fails, only the writer ends. The reader ends the connection later, because octets that the
    // server sent before may still be unread.
    leaving_ = leaving_ || ec.failed();
    if (ec) co_return;
  }
}

// Marks the connection as open and informs its streams. Must be called after the server's first frame, its
// SETTINGS (RFC 9113 §3.4).
void Http2ServerConnection::note_open() noexcept {
  state_ = State::Open;
  for (auto* const stream : streams_) stream->note_change();
}

void Http2ServerConnection::doubt() noexcept {
  if (ping_after_ == kPing) silent_ = std::max(silent_, kPing);
}

// Ends the connection with the error `why`. If the server ended the connection by GOAWAY, sets error_ to
// EBUSY instead, for which is_refusal() is true.
void Http2ServerConnection::end(const net::ErrorCode& why) noexcept {
  if (has_ended()) return;
  const bool went_away = codec_ && !broken_ && codec_->peer_goes_away();
  state_ = State::Ended;
  error_ = went_away ? net::ErrorCode(EBUSY, boost::system::system_category()) : why;
  if (dial_ != nullptr) dial_->cancel();
  if (octets_ != nullptr) octets_->shutdown_send();
  if (octets_ != nullptr) octets_->cancel();
  output_.notify();
  for (auto* const stream : streams_) stream->note_change();
}

void Http2ServerConnection::close() noexcept {
  end(net::asio::error::operation_aborted);
}

void Http2ServerConnection::tick() noexcept {
  if (is_connecting()) {
    connecting_ += net::Watchdog::kTick;
    if (connecting_ >= settings_.connect) end(net::asio::error::timed_out);
    return;
  }
  if (!is_open()) return;
  unused_ = streams_.empty() ? unused_ + net::Watchdog::kTick : base::Duration{};
  if (!streams_.empty()) silent_ += net::Watchdog::kTick;
  if (pinged_) unanswered_ += net::Watchdog::kTick;
  if (leaving_ && streams_.empty()) closing_ += net::Watchdog::kTick;
  if (std::max(unanswered_, closing_) >= kPing) return end(net::asio::error::timed_out);
  leaving_ = leaving_ || unused_ >= settings_.idle;
  try {
    if (leaving_ && streams_.empty() && !std::exchange(gone_away_, true))
      codec_->go_away(http::Http2Error::None);
    if (silent_ >= ping_after_ && !std::exchange(pinged_, true)) {
      ping_after_ = kPingAgain;
      codec_->ping();
    }
    note_output();
  } catch (const std::bad_alloc&) {
    fail();
  }
}

void Http2ServerConnection::attach(Http2ServerStream& stream) {
  streams_.push_back(&stream);
}

void Http2ServerConnection::detach(Http2ServerStream& stream) noexcept {
  std::erase(streams_, &stream);
}

}  // namespace weir::upstream
