#include "proxy/http2/http2_tunnel.hpp"

#include "proxy/http2/http2_connection.hpp"

namespace weir::proxy {

Http2Tunnel::Http2Tunnel(Http2Connection& connection, Http2Stream& stream, Http2Sink& sink)
    : connection_(connection), stream_(stream), sink_(sink), writable_(connection.worker().executor) {}

net::Task<std::size_t> Http2Tunnel::read_some(char* at, std::size_t size, net::ErrorCode& ec) {
  return stream_.read_some(at, size, ec);
}

std::size_t Http2Tunnel::try_read(char* at, std::size_t size, net::ErrorCode& ec) {
  return stream_.try_read(at, size, ec);
}

// Copies the octets, because the codec fetches them only when the client's flow-control windows open. The
// caller may have dropped the octets by then.
std::size_t Http2Tunnel::try_write(std::string_view first, std::string_view second, net::ErrorCode& ec) {
  ec = is_broken() ? net::asio::error::connection_reset : net::ErrorCode();
  if (ec || !sink_.is_flushed()) return 0;
  pending_.assign(first.substr(0, kMostPending));
  pending_.append(second.substr(0, kMostPending - pending_.size()));
  sink_.add(pending_);
  static_cast<void>(sink_.flush(ec));
  return ec ? 0 : pending_.size();
}

std::size_t Http2Tunnel::try_rest(std::string_view first, std::string_view second, net::ErrorCode& ec) {
  return try_write(first, second, ec);
}

net::Port::Wait Http2Tunnel::wait_readable() noexcept {
  return stream_.wait_readable();
}

net::Port::Wait Http2Tunnel::wait_writable() noexcept {
  if (is_broken()) return net::Port::Wait(net::asio::error::connection_reset);
  return writable_.wait(sink_.is_flushed());
}

void Http2Tunnel::shutdown_send() noexcept {
  try {
    net::ErrorCode ignored;
    sink_.end({});
    static_cast<void>(sink_.flush(ignored));
  } catch (...) {  // no memory
    connection_.fail();
  }
}

void Http2Tunnel::trim() noexcept {
  stream_.trim();
  if (!sink_.is_full()) std::string().swap(pending_);
}

void Http2Tunnel::cancel() noexcept {
  stream_.cancel();
}

void Http2Tunnel::note_progress() noexcept {
  if (is_broken() || sink_.is_flushed()) writable_.notify();
}

bool Http2Tunnel::is_broken() const noexcept {
  return stream_.is_disconnected() || connection_.has_failed();
}

}  // namespace weir::proxy
