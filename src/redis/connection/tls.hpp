// TLS to Redis as a codec: it converts between plain and sealed (encrypted) bytes and has no socket. The
// owner of the socket sends the sealed bytes.
//
// The class asio::ssl::stream does not fit, because each of its writes must be awaited. Here all commands of
// one iteration of the event loop are sent in one write, which is tried immediately. The class net::Stream
// does not fit either, because it is the server's side of TLS and belongs to the reactor of client requests.
//
// Belongs to one worker.
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/file_stamp.hpp"
#include "weir/net/idle_records.hpp"
#include "weir/net/tls_context.hpp"
#include "weir/redis/redis_settings.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/ssl.h>

namespace weir::redis {

// Makes SSL objects for the client's end of connections, for TLS 1.2 and 1.3.
class TlsClient {
 public:
  explicit TlsClient(TlsSettings settings) : settings_(std::move(settings)) {}

  // Returns an SSL object for a new connection, owned by the caller. Reads the certificate and key files
  // again if one of them has changed. If the changed files are faulty, uses their earlier content.
  [[nodiscard]] base::Result<SSL*> begin(const std::string& host);

 private:
  [[nodiscard]] net::FileStamps stamps() const;

  const TlsSettings settings_;
  net::TlsContext context_;
  net::FileStamps read_;  // the files' time stamps when the files were last read
};

class TlsCodec {
 public:
  explicit TlsCodec(SSL* ssl);  // takes ownership of `ssl`

  enum class HandshakeResult : std::uint8_t { Done, More, Failed };
  // Continues the handshake as far as possible. Afterwards the caller must send the bytes in sealed(). If the
  // result is HandshakeResult::More, the caller must feed bytes from the peer and call handshake() again.
  [[nodiscard]] HandshakeResult handshake();
  // Returns why handshake() failed: "its certificate is not trusted: certificate has expired".
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  void feed(std::string_view sealed);
  // Decrypts bytes that were fed, writes them to `at`, and returns their number. Returns 0 if more bytes must
  // be fed. Also returns 0 after the end of the TLS stream, and sets `ended`.
  [[nodiscard]] std::size_t open(char* at, std::size_t size, bool& ended);
  void seal(std::string_view plain);
  // Returns the bytes to send to the peer. The caller must remove the bytes that it has sent.
  [[nodiscard]] std::string& sealed() noexcept { return sealed_; }

 private:
  struct Free {
    void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  };
  void drain();
  void note_fault();

  std::unique_ptr<SSL, Free> ssl_;
  // Allocated separately, because ssl_ keeps a pointer to this object.
  std::unique_ptr<net::IdleRecords> idle_;
  std::string sealed_;
  std::string why_;
  bool fed_ = false;
  bool foreign_ = false;  // true: the peer's first byte cannot begin a TLS record
};

}  // namespace weir::redis
