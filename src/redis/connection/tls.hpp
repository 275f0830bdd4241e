// TLS to Redis as a codec: bytes in, bytes out, no socket. The socket's owner sends the sealed bytes.
//
// Why asio::ssl::stream does not fit: each of its writes must be awaited. All commands of one loop turn leave
// in one write that is tried at once. Why net::Stream does not fit: it is the server's end and belongs to the
// reactor of client requests.
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

// Makes the client's SSL objects, for TLS 1.2 and 1.3.
class TlsClient {
 public:
  explicit TlsClient(TlsSettings settings) : settings_(std::move(settings)) {}

  // Returns the SSL object of a new connection. Reads the files again if one has changed. If the changed
  // files are faulty, those read before stay in force.
  [[nodiscard]] base::Result<SSL*> begin(const std::string& host);

 private:
  [[nodiscard]] net::FileStamps stamps() const;

  const TlsSettings settings_;
  net::TlsContext context_;
  net::FileStamps read_;  // stamps of the files at the last read
};

class TlsCodec {
 public:
  explicit TlsCodec(SSL* ssl);  // takes ownership

  enum class Shake : std::uint8_t { Done, More, Failed };
  // Continues the handshake as far as possible. After More, the caller must feed the peer's bytes. In any
  // case the caller must send sealed().
  [[nodiscard]] Shake shake();
  // Returns why shake() failed: "its certificate is not trusted: certificate has expired".
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  void feed(std::string_view sealed);
  // Decrypts fed bytes into `at`. Returns 0 if it needs more bytes, or if `ended`: then no more will come.
  [[nodiscard]] std::size_t open(char* at, std::size_t size, bool& ended);
  void seal(std::string_view plain);
  // Returns the bytes to send. The sender removes what it has sent.
  [[nodiscard]] std::string& sealed() noexcept { return sealed_; }

 private:
  struct Free {
    void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  };
  void drain();
  void note_fault();

  std::unique_ptr<SSL, Free> ssl_;
  std::unique_ptr<net::IdleRecords> idle_;  // ssl_ points to it, so its address must not change
  std::string sealed_;
  std::string why_;
  bool fed_ = false;
  bool foreign_ = false;  // the peer's first byte was not a TLS record
};

}  // namespace weir::redis
