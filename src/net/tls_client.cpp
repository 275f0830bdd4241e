#include "weir/net/tls_client.hpp"

#include "net/tls_words.hpp"

#include "weir/net/tls_files.hpp"

#include <array>
#include <span>

namespace weir::net {

namespace {

// The ALPN protocols that weir can offer. Each name follows its length (RFC 7301 §3.1).
constexpr std::array<unsigned char, 12> kProtocols{2, 'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
constexpr std::size_t kHttp2 = 3;  // the number of octets of the first entry: its length and "h2"

// Offers the protocols that the settings contain. Returns false if memory runs out.
bool offer_protocols(SSL_CTX* context, const TlsClientSettings& settings) {
  const std::span<const unsigned char> all(kProtocols);
  const auto offered = settings.h2 && settings.http1 ? all
                       : settings.h2                 ? all.first(kHttp2)
                                                     : all.subspan(kHttp2);
  return SSL_CTX_set_alpn_protos(context, offered.data(), static_cast<unsigned>(offered.size())) == 0;
}

std::optional<base::Error> believe(SSL_CTX* context, const TlsClientSettings& settings) {
  SSL_CTX_set_verify(context, settings.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (!settings.verify) return std::nullopt;
  if (!settings.ca.empty()) return take_authorities(context, "the file of authorities", settings.ca);
  if (SSL_CTX_set_default_verify_paths(context) == 1) return std::nullopt;
  return last_tls_error("the system's authorities");
}

}  // namespace

TlsSession share(SSL_SESSION* session) noexcept {
  if (session != nullptr) SSL_SESSION_up_ref(session);
  return TlsSession(session);
}

base::Result<TlsContext> make_tls_client_context(const TlsClientSettings& settings) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* c = context.get();
  if (c == nullptr || SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(c, kCiphers12) != 1 || !offer_protocols(c, settings))
    return last_tls_error("OpenSSL");
  SSL_CTX_set_options(c, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(
      c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);  // weir::upstream::Pool stores the sessions instead
  if (auto error = believe(c, settings)) return *std::move(error);
  if (settings.cert.empty()) return context;
  if (auto error = take_certificate(c, settings.cert)) return *std::move(error);
  if (auto error = take_private_key(c, settings.key, settings.cert)) return *std::move(error);
  return context;
}

}  // namespace weir::net
