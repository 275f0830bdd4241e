#include "proxy/http2/http2_sink.hpp"

#include "proxy/http2/http2_connection.hpp"

#include <algorithm>
#include <cstring>

namespace weir::proxy {

Http2Sink::Http2Sink(Http2Connection& connection, std::int32_t id, const http::Http2Fields& fields,
                     std::optional<std::uint64_t> length, const bool& disconnected)
    : connection_(connection),
      id_(id),
      fields_(fields),
      left_(length),
      disconnected_(disconnected),
      room_(connection.worker().executor) {}

void Http2Sink::add(std::string_view piece) {
  piece_ = piece;
  holds_partial_piece_ = false;
}

void Http2Sink::end(std::string_view trailers) {
  ended_ = true;
  trailers_.add_trailers(trailers);
}

bool Http2Sink::flush(net::ErrorCode& ec) {
  const bool broken = disconnected_ || connection_.has_failed();
  if (!broken) {
    auto& codec = connection_.codec();
    if (begun_) {
      codec.resume(id_);
    } else {
      const bool has_body = !piece_.empty() || (!ended_ && left_ != 0) || trailers_.size() != 0;
      begun_ = true;
      sent_ += fields_.octets();
      codec.send_head(id_, fields_, has_body);
    }
    connection_.pump();
  }
  if (disconnected_ || connection_.has_failed()) ec = net::asio::error::connection_reset;
  return !ec && is_flushed();
}

net::Task<net::ErrorCode> Http2Sink::wait_for_room() {
  net::ErrorCode ec;
  while (!ec && !disconnected_ && !connection_.has_failed() && !is_flushed()) ec = co_await room_.wait();
  if (disconnected_ || connection_.has_failed()) ec = net::asio::error::connection_reset;
  co_return ec;
}

std::size_t Http2Sink::give(char* at, std::size_t room, bool& ended) noexcept {
  const auto size = std::min(room, piece_.size());
  if (size != 0) std::memcpy(at, piece_.data(), size);
  piece_.remove_prefix(size);
  holds_partial_piece_ = !piece_.empty();
  sent_ += size;
  if (left_) *left_ -= std::min<std::uint64_t>(size, *left_);
  ended = piece_.empty() && (ended_ || left_ == 0);
  if (piece_.empty()) room_.notify();
  return size;
}

}  // namespace weir::proxy
