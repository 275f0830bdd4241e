// TLS to Redis as a codec: bytes in, bytes out, no socket. Whoever has the socket moves what is sealed.
//
// Not asio::ssl::stream, whose writes have to be awaited: what a turn of the loop asks leaves in one write
// that is tried at once. Not net::Stream, which is of the reactor that requests go by, and a server's end.
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

// The client's side of TLS 1.2 and 1.3, as configured.
class TlsClient {
 public:
  explicit TlsClient(TlsSettings settings) : settings_(std::move(settings)) {}

  // A new connection's, of files as they are now: they are read again only where one has changed. Where they
  // are faulty, what was read before stays in force.
  [[nodiscard]] base::Result<SSL*> begin(const std::string& host);

 private:
  [[nodiscard]] net::FileStamps stamps() const;

  const TlsSettings settings_;
  net::TlsContext context_;
  net::FileStamps read_;  // the files' stamps when they were read last
};

class TlsCodec {
 public:
  explicit TlsCodec(SSL* ssl);  // takes it over

  enum class Shake : std::uint8_t { Done, More, Failed };
  // Goes on as far as it can; More: feed what the peer says. Either way send what is sealed().
  [[nodiscard]] Shake shake();
  // Of a shake that failed: "its certificate is not to be trusted: certificate has expired".
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  void feed(std::string_view sealed);
  // Opens what was fed; 0: feed more, or, where `ended` is set, there will be no more.
  [[nodiscard]] std::size_t open(char* at, std::size_t size, bool& ended);
  void seal(std::string_view plain);
  // What has to be sent; whoever sends it takes it off.
  [[nodiscard]] std::string& sealed() noexcept { return sealed_; }

 private:
  struct Free {
    void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  };
  void drain();
  void note_fault();

  std::unique_ptr<SSL, Free> ssl_;
  std::unique_ptr<net::IdleRecords> idle_;  // which ssl_ knows, so it stays where it is
  std::string sealed_;
  std::string why_;
  bool fed_ = false;
  bool foreign_ = false;  // what answers has begun with no record of TLS
};

}  // namespace weir::redis
