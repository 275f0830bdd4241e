// A connected byte stream, plain or TLS: one vocabulary for both, so that nothing above cares.
//
// Belongs to one worker. At most one read and one write wait at a time; cancel() ends both with
// operation_aborted. Writes go straight to the socket, which nearly always takes a small answer whole; only
// what does not fit waits.
#pragma once

#include "weir/net/asio.hpp"

#include <cstddef>
#include <memory>
#include <string_view>

#include <openssl/ssl.h>

namespace weir::net {

class Stream {
 public:
  explicit Stream(Socket socket);
  // The server's end of TLS; handshake() must come before anything else.
  Stream(Socket socket, SSL_CTX* context);
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  [[nodiscard]] Awaitable<ErrorCode> handshake();

  // Waits for bytes. 0 with `ec` clear never happens: the end is asio::error::eof.
  [[nodiscard]] Awaitable<std::size_t> read_some(char* at, std::size_t size, ErrorCode& ec);

  // Sends as much of `first`, then `second`, as is taken at once; the count. A full socket is no error.
  [[nodiscard]] std::size_t try_write(std::string_view first, std::string_view second, ErrorCode& ec);

  // Sends all of it, waiting for room. The views must stay valid until it completes.
  [[nodiscard]] Awaitable<ErrorCode> write(std::string_view first, std::string_view second = {});

  // Waits until bytes can be read (or the end can), without a buffer. For TLS: until the socket has some.
  [[nodiscard]] Awaitable<ErrorCode> wait_readable();
  // Waits until try_write() can go on.
  [[nodiscard]] Awaitable<ErrorCode> wait_writable();

  // The peer closed its end or the connection broke, as far as the kernel knows. Never blocks.
  [[nodiscard]] bool peer_left() const noexcept;
  // Bytes that were received and not yet read, in TLS's buffers.
  [[nodiscard]] bool has_pending() const noexcept;
  // Gives back what an idle connection does not need.
  void trim() noexcept;

  void cancel() noexcept;
  // Sends close_notify (TLS) and FIN; reading goes on.
  void shutdown_send() noexcept;
  void close() noexcept;

  [[nodiscard]] bool is_tls() const noexcept { return tls_ != nullptr; }
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  [[nodiscard]] Socket& socket() noexcept { return socket_; }

 private:
  struct Tls;

  [[nodiscard]] std::size_t send_plain(std::string_view first, std::string_view second,
                                       ErrorCode& ec) noexcept;
  [[nodiscard]] std::size_t send_tls(std::string_view bytes, ErrorCode& ec) noexcept;
  [[nodiscard]] Awaitable<ErrorCode> feed();

  Socket socket_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace weir::net
