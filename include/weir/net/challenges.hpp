// The pending challenges by which a certificate authority checks that weir controls a name (ACME).
//
// The thread that orders certificates sets them, and all workers read them. While no challenge is pending, a
// reader loads one atomic number and takes no lock.
#pragma once

#include "weir/base/result.hpp"

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

namespace weir::net {

class Challenges {
 public:
  using Context = std::shared_ptr<SSL_CTX>;  // shared with handshakes that have begun
  struct Pending {
    std::map<std::string, std::string, std::less<>> texts{};  // HTTP-01: the text for each token
    std::map<std::string, Context, std::less<>> contexts{};   // TLS-ALPN-01: the context for each name
  };

  Challenges() = default;
  Challenges(const Challenges&) = delete;
  Challenges& operator=(const Challenges&) = delete;

  // Replaces all pending challenges.
  void set(Pending pending);

  [[nodiscard]] bool are_pending() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
  // Returns the text that answers a request for the path, if the path is
  // "/.well-known/acme-challenge/TOKEN" and the token is pending.
  [[nodiscard]] std::optional<std::string> answer_to(std::string_view path) const;
  // Returns the context with the certificate that proves control of the name; null if no challenge for the
  // name is pending.
  [[nodiscard]] Context context_for(std::string_view name) const;

 private:
  std::atomic<std::size_t> count_{0};  // the number of texts and contexts in pending_
  mutable std::mutex mutex_;           // guards pending_
  Pending pending_;
};

// The ALPN protocol of TLS-ALPN-01 (RFC 8737 §6.2), in which nothing is sent after the handshake.
inline constexpr std::string_view kAcmeTls = "acme-tls/1";

// Makes the TLS context for a challenge from a PEM text with a key and a certificate.
[[nodiscard]] base::Result<Challenges::Context> make_challenge_context(const std::string& pem);

// Makes the context answer challenges. A handshake whose client offers kAcmeTls as the only protocol gets the
// certificate of the pending challenge for the name that the client requests. All other handshakes continue
// as before. The context keeps `challenges` alive.
void answer_challenges(SSL_CTX* context, std::shared_ptr<const Challenges> challenges);

}  // namespace weir::net
