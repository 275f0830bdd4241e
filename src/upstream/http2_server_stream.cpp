#include "upstream/http2_server_stream.hpp"

#include "upstream/http2_server_connection.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace weir::upstream {

Http2ServerStream::Http2ServerStream(std::shared_ptr<Http2ServerConnection> connection)
    : connection_(std::move(connection)),
      readable_(connection_->executor()),
      writable_(connection_->executor()) {
  connection_->attach(*this);
}

Http2ServerStream::~Http2ServerStream() {
  connection_->detach(*this);
  if (!id_ || !connection_->is_open()) return;
  if (!response_begun_ && !closed_) connection_->doubt();
  try {
    use_codec([this](http::Http2Session& codec) {
      codec.detach(*id_);
      if (unconsumed_ != 0) codec.consume(*id_, unconsumed_);
      if (!closed_) codec.reset(*id_, http::Http2Error::Cancel);
    });
  } catch (const std::bad_alloc&) {  // the connection and all its streams have ended
  }
}

// Calls `use` with the codec, and makes the connection send the resulting frames soon. If the codec throws,
// ends the connection, because the codec must not be used again.
template <class Use>
void Http2ServerStream::use_codec(Use use) {
  try {
    use(connection_->codec());
  } catch (...) {
    connection_->fail();
    throw;
  }
  connection_->note_output();
}

net::Task<net::ErrorCode> Http2ServerStream::connected() {
  net::ErrorCode ec;
  while (!ec && connection_->is_connecting()) ec = co_await readable_.wait(false);
  if (!ec && connection_->has_ended()) ec = connection_->error();
  co_return ec;
}

bool Http2ServerStream::may_have_met_idle_close() const noexcept {
  return was_idle_ && connection_->arrivals() == arrivals_before_;
}

bool Http2ServerStream::is_broken() const noexcept {
  return !ended_ && (closed_ || refused_ || !connection_->is_open());
}

bool Http2ServerStream::is_readable() const noexcept {
  return taken_ < text_.size() || ended_ || is_broken();
}

std::size_t Http2ServerStream::try_read(char* at, std::size_t size, net::ErrorCode& ec) {
  size = std::min(size, text_.size() - taken_);
  if (size == 0) {
    ec = net::asio::error::would_block;
    if (ended_) ec = net::asio::error::eof;
    if (is_broken()) ec = connection_->error() ? connection_->error() : net::asio::error::connection_reset;
    return 0;
  }
  ec = {};
  std::memcpy(at, text_.data() + taken_, size);
  // The text contains heads and framing beside the body, so this is only an estimate of the body octets that
  // were read. Once all text has been read, all body octets count as read.
  const auto consumed = unconsumed_ * size / (text_.size() - taken_);
  taken_ += size;
  const bool all = taken_ == text_.size();
  if (all) text_.clear();
  if (all) taken_ = 0;
  if (consumed == 0 || !connection_->is_open()) return size;
  unconsumed_ -= consumed;
  use_codec([&](http::Http2Session& codec) { codec.consume(*id_, consumed); });
  return size;
}

net::Task<std::size_t> Http2ServerStream::read_some(char* at, std::size_t size, net::ErrorCode& ec) {
  auto count = try_read(at, size, ec);
  while (ec == net::asio::error::would_block) {
    ec = co_await wait_readable();
    if (!ec) count = try_read(at, size, ec);
  }
  co_return count;
}

std::size_t Http2ServerStream::try_write(std::string_view first, std::string_view second,
                                         net::ErrorCode& ec) {
  if (id_) return try_rest(first, second, ec);
  ec = {};
  http::Http2Fields fields;
  const auto length = fields.add_request(first.substr(0, first.find("\r\n\r\n") + 4), connection_->is_tls());
  left_ = length;
  body_ended_ = length == 0;
  response_.emplace(first.starts_with("HEAD "), kMostHead);
  was_idle_ = connection_->may_meet_idle_close();
  arrivals_before_ = connection_->arrivals();
  if (connection_->is_open())
    use_codec([&](http::Http2Session& codec) { id_ = codec.request(fields, !body_ended_, *this); });
  if (!id_) {
    refused_ = true;
    ec = net::asio::error::connection_reset;
    return 0;
  }
  const auto head = first.find("\r\n\r\n") + 4;
  const auto used = head + add_body(first.substr(head));
  return used < first.size() ? used : used + add_body(second);
}

std::size_t Http2ServerStream::try_rest(std::string_view first, std::string_view second, net::ErrorCode& ec) {
  ec = {};
  if (closed_ || !connection_->is_open()) {
    ec = net::asio::error::broken_pipe;
    return 0;
  }
  auto used = add_body(first);
  if (used == first.size()) used += add_body(second);
  use_codec([this](http::Http2Session& codec) { codec.resume(*id_); });
  return used;
}

// Moves body octets from `text` to `body_` until kMostBody octets wait there. Returns how many octets of
// `text` were used, including the framing of chunks.
std::size_t Http2ServerStream::add_body(std::string_view text) {
  std::size_t used = 0;
  while (used < text.size() && !body_ended_ && body_.size() - given_ < kMostBody) {
    if (given_ >= body_.size() / 2) body_.erase(0, std::exchange(given_, 0));
    const auto rest = text.substr(used, kMostBody - (body_.size() - given_));
    if (left_) {
      const auto piece = rest.substr(0, std::min<std::uint64_t>(*left_, rest.size()));
      body_ += piece;
      used += piece.size();
      *left_ -= piece.size();
      body_ended_ = *left_ == 0;
      continue;
    }
    const auto piece = decoder_.next(rest);
    body_ += piece.data;
    used += piece.used;
    body_ended_ = piece.status == http::ChunkDecoder::Status::Done;
  }
  return used;
}

net::Port::Wait Http2ServerStream::wait_readable() noexcept {
  return readable_.wait(is_readable());
}

net::Port::Wait Http2ServerStream::wait_writable() noexcept {
  return writable_.wait(closed_ || !connection_->is_open() || body_.size() - given_ < kMostBody);
}

void Http2ServerStream::cancel() noexcept {
  readable_.cancel();
  writable_.cancel();
}

void Http2ServerStream::note_change() noexcept {
  readable_.notify();
  writable_.notify();
}

void Http2ServerStream::on_field(std::string_view name, std::string_view value) {
  response_->add(name, value);
}

// Resets the stream if unread interim heads (1xx) take more than kWindow octets of `text_`. Flow control does
// not bound heads, so the server could otherwise send any number of them. Unread body octets do not count:
// each takes at most 8 octets of `text_`, with the framing of its chunk.
void Http2ServerStream::on_head() {
  if (text_.size() - taken_ > kWindow + 8 * unconsumed_)
    return connection_->codec().reset(*id_, http::Http2Error::EnhanceYourCalm);
  response_begun_ = true;
  connection_->note_response();
  response_->end_fields(text_);
  readable_.notify();
}

void Http2ServerStream::on_data(std::string_view octets) {
  if (taken_ >= text_.size() / 2) text_.erase(0, std::exchange(taken_, 0));
  response_->add_body(octets, text_);
  unconsumed_ += octets.size();
  connection_->note_response();
  readable_.notify();
}

void Http2ServerStream::on_end() {
  response_->end(text_);
  ended_ = true;
  readable_.notify();
}

void Http2ServerStream::on_closed(http::Http2Error error) {
  closed_ = true;
  refused_ = error == http::Http2Error::RefusedStream;
  note_change();
}

std::size_t Http2ServerStream::give(char* at, std::size_t room, bool& ended) noexcept {
  const auto size = std::min(room, body_.size() - given_);
  if (size != 0) std::memcpy(at, body_.data() + given_, size);
  given_ += size;
  ended = body_ended_ && given_ == body_.size();
  if (body_.size() - given_ < kMostBody) writable_.notify();
  return size;
}

}  // namespace weir::upstream
