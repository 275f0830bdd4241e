// The TLS part of a Stream. Belongs to the Stream.
#pragma once

#include "weir/net/idle_records.hpp"
#include "weir/net/stream.hpp"

#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

namespace weir::net {

// The TLS state of a Stream, which calls OpenSSL directly. One read of the socket fills `incoming`, from
// which OpenSSL takes ciphertext. OpenSSL writes ciphertext straight to the socket, except during the
// handshake. Compared with asio::ssl::stream, this saves one copy and a pair of memory BIOs.
struct Stream::Tls {
  SSL* ssl = nullptr;
  std::unique_ptr<char[]> buffer;  // received ciphertext, up to kBuffer octets; trim() frees the buffer
  std::string_view incoming;       // the part of `buffer` that OpenSSL has not consumed yet
  bool ended = false;
  // The octets that OpenSSL has written in the handshake and the stream has not sent yet. They are collected,
  // because OpenSSL writes each session ticket separately, and each write to the socket would be a packet.
  std::string outgoing;
  // an error that OpenSSL reported after octets that try_read() has returned; the next try_read() returns
  // this error
  ErrorCode read_failure;
  IdleRecords idle;

  static constexpr std::size_t kBuffer = 16 << 10;

  Tls(SSL_CTX* context, int socket);
  Tls(const TlsTarget& target, int socket);
  // Frees the SSL object. If weir is the client, first marks the connection as shut down. Without the mark,
  // OpenSSL would not resume the session of a connection that ended without close_notify.
  ~Tls() {
    if (SSL_is_server(ssl) == 0) SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
  }
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Encrypts and sends `bytes`. Returns the number of octets that OpenSSL accepted. Sets `full` to true if
  // the socket's buffer is full. In that case the next call must begin with the octets that were not
  // accepted, because OpenSSL may have encrypted some of them already.
  [[nodiscard]] std::size_t seal(std::string_view bytes, bool& full, ErrorCode& ec) noexcept;

  // Clears OpenSSL's error queue, so that the next operation does not report an old error.
  static void forget_errors() noexcept;

  // Returns the error code for the result of an SSL_… function: would_block (OpenSSL needs more input, or the
  // socket's buffer is full), eof, or another error.
  [[nodiscard]] ErrorCode meaning(int result) const noexcept;
  // Must be called once after the handshake. OpenSSL then writes straight to the socket. Checks whether a
  // resumed session still satisfies the settings, and starts to count records without data (IdleRecords).
  // Returns eof if a certificate authority made the handshake to check a challenge, because that connection
  // has served its purpose.
  [[nodiscard]] ErrorCode admit() noexcept;
  // Writes close_notify. The caller must then shut down the socket for sending: its FIN goes into the same
  // packet.
  void write_close_notify() noexcept;
  // Detaches OpenSSL from the socket. Must be called before the socket is closed, because another connection
  // may soon get the same descriptor number.
  void detach() noexcept;

 private:
  [[nodiscard]] bool was_challenge() const noexcept;
  [[nodiscard]] bool lacks_certificate() const noexcept;
  [[nodiscard]] bool outlived_certificate() const noexcept;
};

}  // namespace weir::net
