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

using Names = std::unique_ptr<STACK_OF(X509_NAME), decltype([](STACK_OF(X509_NAME) * names) {
                                sk_X509_NAME_pop_free(names, X509_NAME_free);
                              })>;

// The subjects of the authorities, which clients are told to choose by. OpenSSL reads what it can: a file
// without a certificate gives null, one that is faulty further on what stands before.
Names read_authorities(const std::string& file) {
  return Names(SSL_load_client_CA_file(file.c_str()));
}

// False when the file is of no use. The session id context, which make_one() sets, is what lets a client
// whose certificate was verified resume its session (SSL_CTX_set_session_id_context(3)).
bool ask_clients(SSL_CTX* context, const TlsSettings& settings) {
  auto authorities = read_authorities(settings.client_ca);
  if (!authorities || SSL_CTX_load_verify_file(context, settings.client_ca.c_str()) != 1) return false;
  SSL_CTX_set_client_CA_list(context, authorities.release());
  const bool required = settings.client_auth == ClientAuth::Require;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
  return true;
}

base::Error client_ca_error(const std::string& file) {
  return last_error("the clients' authorities \"" + file + "\"");
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
  if (!settings.client_ca.empty() && !ask_clients(c, settings)) return client_ca_error(settings.client_ca);
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

std::optional<base::Error> fault_of_client_ca(const std::string& file) {
  ERR_clear_error();
  if (!read_authorities(file)) return client_ca_error(file);
  return std::nullopt;
}

}  // namespace weir::net
