// The TLS part of a Stream. Belongs to the Stream.
#pragma once

#include "weir/net/idle_records.hpp"
#include "weir/net/stream.hpp"

#include <string_view>
#include <vector>

#include <openssl/ssl.h>

namespace weir::net {

// Calls OpenSSL directly. OpenSSL takes ciphertext from `incoming`, which is filled by one read of the
// socket. It sends its own ciphertext straight to the socket. Compared with asio::ssl::stream, this saves one
// copy and a pair of memory BIOs.
struct Stream::Tls {
  SSL* ssl = nullptr;
  std::vector<char> buffer;   // ciphertext; freed by trim()
  std::string_view incoming;  // the part of `buffer` that OpenSSL has not consumed yet
  bool ended = false;
  IdleRecords idle;

  static constexpr std::size_t kBuffer = 16 << 10;

  Tls(SSL_CTX* context, int socket);
  Tls(const TlsTarget& target, int socket);
  // Marks a client's session as shut down, so that it can be resumed however the connection ends. Truncated
  // answers are detected by their framing or by a missing close_notify.
  ~Tls() {
    if (SSL_is_server(ssl) == 0) SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
  }
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Seals and sends `bytes`. Returns the number of octets that OpenSSL accepted. Sets `full` if the socket is
  // full. OpenSSL may then have encrypted the following octets already, so the next call must begin with
  // these octets.
  [[nodiscard]] std::size_t seal(std::string_view bytes, bool& full, ErrorCode& ec) noexcept;

  // Clears OpenSSL's error queue, so that the next operation does not report an old error. Checks first
  // whether the queue is empty, because that is cheaper.
  static void forget_errors() noexcept;

  // Returns the error code for a failed SSL_… call: would_block (more input is needed, or the socket is
  // full), eof, or another error.
  [[nodiscard]] ErrorCode meaning(int result) const noexcept;
  // Checks after the handshake whether a resumed session still satisfies the settings. Starts to count
  // records without data (IdleRecords).
  [[nodiscard]] ErrorCode admit() noexcept;
  // Makes OpenSSL use the socket no longer. Must be called before the socket is closed, because its number
  // may soon belong to another connection.
  void let_go() noexcept;

 private:
  [[nodiscard]] bool lacks_certificate() const noexcept;
  [[nodiscard]] bool outlived_certificate() const noexcept;
};

}  // namespace weir::net
