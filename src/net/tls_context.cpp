#include "weir/net/tls_context.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/err.h>
#include <openssl/x509v3.h>

namespace weir::net {

namespace {

constexpr auto kCiphers12 =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

base::Error last_error(const std::string& what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_peek_last_error(), text.data(), text.size());
  ERR_clear_error();
  return base::Error{what + ": " + text.data()};
}

// RFC 7301: picks http/1.1 where the client offers it, and goes on without a protocol where it does not.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                    unsigned offered_size, void*) {
  static constexpr std::string_view kOurs = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, size, reinterpret_cast<const unsigned char*>(kOurs.data()),
                                          static_cast<unsigned>(kOurs.size()), offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

// The contexts of a listener's further certificates. Belongs to the first one's context, and goes with it.
using Others = std::vector<TlsContext>;

int others_slot() {
  static const int slot = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* others, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<Others*>(others); });
  return slot;
}

bool is_for(SSL_CTX* context, const char* name) noexcept {
  return X509_check_host(SSL_CTX_get0_certificate(context), name, 0, 0, nullptr) == 1;
}

// RFC 6066 §3: the certificate that the name asked for is in; the first one where none is, or no name came.
int choose_certificate(SSL* ssl, int*, void* context) {
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  auto* first = static_cast<SSL_CTX*>(context);
  if (name == nullptr || is_for(first, name)) return SSL_TLSEXT_ERR_OK;
  for (const auto& other : *static_cast<Others*>(SSL_CTX_get_ex_data(first, others_slot()))) {
    if (!is_for(other.get(), name)) continue;
    SSL_set_SSL_CTX(ssl, other.get());
    break;
  }
  return SSL_TLSEXT_ERR_OK;
}

base::Result<TlsContext> make_one(const TlsSettings& settings, const CertificateFiles& files) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return last_error("OpenSSL");
  SSL_CTX* c = context.get();
  SSL_CTX_set_min_proto_version(c,
                                settings.min_version == TlsVersion::Tls13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(c, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                             SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(
      c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_id_context(c, reinterpret_cast<const unsigned char*>("weir"), 4);
  SSL_CTX_set_alpn_select_cb(c, choose_protocol, nullptr);
  if (SSL_CTX_set_cipher_list(c, kCiphers12) != 1) return last_error("the TLS 1.2 ciphers");
  if (SSL_CTX_use_certificate_chain_file(c, files.cert.c_str()) != 1)
    return last_error("the certificate \"" + files.cert + "\"");
  if (SSL_CTX_use_PrivateKey_file(c, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return last_error("the key \"" + files.key + "\"");
  if (SSL_CTX_check_private_key(c) != 1)
    return last_error("the key \"" + files.key + "\" is not that of the certificate \"" + files.cert + "\"");
  return context;
}

}  // namespace

base::Result<TlsContext> make_tls_context(const TlsSettings& settings) {
  auto others = std::make_unique<Others>();
  TlsContext first;
  for (const auto& files : settings.certificates) {
    auto made = make_one(settings, files);
    if (!made) return made.error();
    if (first)
      others->push_back(std::move(*made));
    else
      first = std::move(*made);
  }
  if (!first) return base::Error{"a TLS listener needs a certificate"};
  SSL_CTX_set_tlsext_servername_callback(first.get(), choose_certificate);
  SSL_CTX_set_tlsext_servername_arg(first.get(), first.get());
  if (SSL_CTX_set_ex_data(first.get(), others_slot(), others.get()) == 1)
    static_cast<void>(others.release());  // the context's now
  return first;
}

}  // namespace weir::net
