#include "weir/net/tls_client.hpp"

#include "net/tls_words.hpp"

#include <array>

namespace weir::net {

namespace {

// RFC 7301 §3.1: each protocol behind its length.
constexpr std::array<unsigned char, 9> kProtocols{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

bool believe(SSL_CTX* context, const TlsClientSettings& settings) {
  SSL_CTX_set_verify(context, settings.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (!settings.verify) return true;
  return settings.ca.empty() ? SSL_CTX_set_default_verify_paths(context) == 1
                             : SSL_CTX_load_verify_file(context, settings.ca.c_str()) == 1;
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
      SSL_CTX_set_cipher_list(c, kCiphers12) != 1 ||
      SSL_CTX_set_alpn_protos(c, kProtocols.data(), kProtocols.size()) != 0)
    return last_tls_error("OpenSSL");
  SSL_CTX_set_options(c, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(
      c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);  // whoever connects keeps what it got
  if (!believe(c, settings)) return last_tls_error("the servers' authorities \"" + settings.ca + "\"");
  if (settings.cert.empty()) return context;
  if (SSL_CTX_use_certificate_chain_file(c, settings.cert.c_str()) != 1)
    return last_tls_error("the certificate \"" + settings.cert + "\"");
  if (auto error = use_private_key(c, settings.key)) return *std::move(error);
  if (SSL_CTX_check_private_key(c) != 1)
    return last_tls_error("the key \"" + settings.key + "\" is not that of the certificate \"" +
                          settings.cert + "\"");
  return context;
}

}  // namespace weir::net
