// The TLS part of a Stream. Belongs to the Stream.
#pragma once

#include "weir/net/idle_records.hpp"
#include "weir/net/stream.hpp"

#include <string_view>
#include <vector>

#include <openssl/ssl.h>

namespace weir::net {

// Drives OpenSSL by hand. OpenSSL takes ciphertext from `incoming`, which one read of the socket fills. It
// sends its own ciphertext straight to the socket. Compared with asio::ssl::stream, this saves one copy and a
// pair of memory BIOs.
struct Stream::Tls {
  SSL* ssl = nullptr;
  std::vector<char> buffer;   // ciphertext; freed by trim()
  std::string_view incoming;  // the part of it that OpenSSL has not taken yet
  bool ended = false;
  IdleRecords idle;

  static constexpr std::size_t kBuffer = 16 << 10;

  Tls(SSL_CTX* context, int socket);
  Tls(const TlsTarget& target, int socket);
  // Marks a client's session as shut down, so that it can be resumed however the connection ends. Truncation
  // is detected by other means.
  ~Tls() {
    if (SSL_is_server(ssl) == 0) SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
  }
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Seals and sends `bytes`. Returns how many octets were accepted. Sets `full` if the socket is full.
  // OpenSSL may then hold a sealed record of the following bytes, and the next call must begin with the same
  // octets.
  [[nodiscard]] std::size_t seal(std::string_view bytes, bool& full, ErrorCode& ec) noexcept;

  // Clears OpenSSL's error queue if it is not empty, because an operation reports the queue's first entry.
  // Checking is cheaper than clearing.
  static void forget_errors() noexcept;

  // Returns the meaning of a failed SSL_… call: would_block (feed or wait), eof, or an error.
  [[nodiscard]] ErrorCode meaning(int result) const noexcept;
  // Checks after the handshake whether a resumed session still satisfies the settings. Starts to count
  // records.
  [[nodiscard]] ErrorCode admit() noexcept;
  // Forgets the socket, whose number may soon belong to another connection.
  void let_go() noexcept;

 private:
  [[nodiscard]] bool lacks_certificate() const noexcept;
  [[nodiscard]] bool outlived_certificate() const noexcept;
};

}  // namespace weir::net
