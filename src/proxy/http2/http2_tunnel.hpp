// Http2Tunnel is the client's side of a WebSocket over HTTP/2 (RFC 8441). DATA frames carry its octets in
// both directions, and END_STREAM ends a direction. Http2Stream owns the tunnel.
#pragma once

#include "proxy/http2/http2_sink.hpp"

#include "weir/net/byte_stream.hpp"
#include "weir/net/signal.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::proxy {

class Http2Stream;

class Http2Tunnel final : public net::DuplexStream {
 public:
  // `sink` must have sent the head of the response. All arguments must outlive the tunnel.
  Http2Tunnel(Http2Connection& connection, Http2Stream& stream, Http2Sink& sink);

  [[nodiscard]] net::Task<std::size_t> read_some(char* at, std::size_t size, net::ErrorCode& ec) override;
  [[nodiscard]] std::size_t try_read(char* at, std::size_t size, net::ErrorCode& ec) override;
  // Accepts octets only if no earlier octets still wait for the client's flow-control windows.
  [[nodiscard]] std::size_t try_write(std::string_view first, std::string_view second,
                                      net::ErrorCode& ec) override;
  [[nodiscard]] std::size_t try_rest(std::string_view first, std::string_view second,
                                     net::ErrorCode& ec) override;
  [[nodiscard]] bool owes_write() const noexcept override { return !sink_.is_flushed(); }
  [[nodiscard]] net::Port::Wait wait_readable() noexcept override;
  [[nodiscard]] net::Port::Wait wait_writable() noexcept override;
  void shutdown_send() noexcept override;
  void trim() noexcept override;
  void cancel() noexcept override;

  // Must be called when the codec has taken octets or the end of the stream from the sink, and when the
  // client has gone.
  void note_progress() noexcept;
  // Ends the wait of wait_writable().
  void cancel_sending() noexcept { writable_.cancel(); }

 private:
  // The largest number of octets that wait for the client's flow-control windows.
  static constexpr std::size_t kMostPending = 32 << 10;

  [[nodiscard]] bool is_broken() const noexcept;

  Http2Connection& connection_;
  Http2Stream& stream_;
  Http2Sink& sink_;
  std::string pending_;  // octets for the client; the sink points to this memory
  net::Readiness writable_;
};

}  // namespace weir::proxy
