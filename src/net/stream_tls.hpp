// The TLS of a Stream. Belongs to it.
#pragma once

#include "weir/net/idle_records.hpp"
#include "weir/net/stream.hpp"

#include <string_view>
#include <vector>

#include <openssl/ssl.h>

namespace weir::net {

// TLS driven by hand: OpenSSL takes ciphertext from `incoming`, which one asynchronous read fills, and sends
// its own straight to the socket. That is one copy and no memory BIO pair less than asio::ssl::stream.
struct Stream::Tls {
  SSL* ssl = nullptr;
  std::vector<char> buffer;   // ciphertext; given back by trim()
  std::string_view incoming;  // what of it OpenSSL has not taken yet
  bool ended = false;
  IdleRecords idle;

  static constexpr std::size_t kBuffer = 16 << 10;

  Tls(SSL_CTX* context, int socket);
  Tls(const TlsTarget& target, int socket);
  // A client's session is to be resumed, however its connection ends: a truncation is told by other means.
  ~Tls() {
    if (SSL_is_server(ssl) == 0) SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
  }
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Seals `bytes` and sends them, and returns how many octets the socket has taken. Sets `full` if the socket
  // is full: OpenSSL may then hold a sealed record of what follows, and the next call must begin with the
  // same octets.
  [[nodiscard]] std::size_t seal(std::string_view bytes, bool& full, ErrorCode& ec) noexcept;

  // An operation reports the first entry of the error queue. To look is cheaper than to clear the queue.
  static void forget_errors() noexcept;

  // What an SSL_… call that did not succeed means: would_block (feed or wait), eof, or an error.
  [[nodiscard]] ErrorCode meaning(int result) const noexcept;
  // After the handshake: whether what the session rests on is enough now. Records are counted from then on.
  [[nodiscard]] ErrorCode admit() noexcept;
  // Of the socket, whose number may soon be another connection's.
  void let_go() noexcept;

 private:
  [[nodiscard]] bool lacks_certificate() const noexcept;
  [[nodiscard]] bool outlived_certificate() const noexcept;
};

}  // namespace weir::net
