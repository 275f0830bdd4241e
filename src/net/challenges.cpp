#include "weir/net/challenges.hpp"

#include "net/tls_words.hpp"

#include <new>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace weir::net {

namespace {

using PemText = std::unique_ptr<BIO, decltype([](BIO* bio) { BIO_free(bio); })>;
using OwnedCertificate = std::unique_ptr<X509, decltype([](X509* certificate) { X509_free(certificate); })>;
using OwnedKey = std::unique_ptr<EVP_PKEY, decltype([](EVP_PKEY* key) { EVP_PKEY_free(key); })>;
using Held = std::shared_ptr<const Challenges>;

// Returns the index of a context's extra data where its reference to the challenges is stored. OpenSSL frees
// the reference with the context.
int challenges_slot() {
  static const int slot = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* held, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<Held*>(held); });
  return slot;
}

// Returns the content of an extension of the ClientHello; empty if the client did not send it.
std::string_view extension(SSL* ssl, unsigned type) noexcept {
  const unsigned char* bytes = nullptr;
  std::size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, type, &bytes, &size) != 1) return {};
  return {reinterpret_cast<const char*>(bytes), size};
}

std::size_t number_at(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])) << 8U |
         static_cast<unsigned char>(bytes[at + 1]);
}

// Returns true if the client offers kAcmeTls and no other protocol, as RFC 8737 §3 demands of authorities.
bool offers_acme_alone(SSL* ssl) noexcept {
  const auto offered = extension(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation);
  constexpr std::size_t kHead = 3;  // octets: the length of the list, then the length of the name
  return offered.size() == kHead + kAcmeTls.size() && offered.substr(kHead) == kAcmeTls &&
         number_at(offered, 0) == kAcmeTls.size() + 1;
}

// Returns the requested name (RFC 6066 §3); empty if there is none.
std::string_view name_in_hello(SSL* ssl) noexcept {
  const auto names = extension(ssl, TLSEXT_TYPE_server_name);
  constexpr std::size_t kHead = 5;  // the length of the list, the kind of name, the length of the name
  if (names.size() <= kHead || names[2] != TLSEXT_NAMETYPE_host_name) return {};
  const auto size = number_at(names, 3);
  return size <= names.size() - kHead ? names.substr(kHead, size) : std::string_view();
}

// Sends the certificate of a pending challenge to a client that checks this challenge. OpenSSL calls this
// function before it chooses the TLS version, the session or anything else.
int look_at_hello(SSL* ssl, int*, void* argument) {
  const auto& challenges = *static_cast<const Challenges*>(argument);
  if (!challenges.are_pending() || !offers_acme_alone(ssl)) return SSL_CLIENT_HELLO_SUCCESS;
  try {
    const auto context = challenges.context_for(name_in_hello(ssl));
    if (!context)
      return SSL_CLIENT_HELLO_SUCCESS;  // the handshake fails, because ALPN has no common protocol
    SSL_set_SSL_CTX(ssl, context.get());
    // asks for no client certificate, because the authority has none; weir ends the connection after the
    // handshake (Stream::Tls::admit)
    SSL_set_verify(ssl, SSL_VERIFY_NONE, nullptr);
    SSL_set_options(ssl, SSL_OP_NO_TICKET);
    SSL_set_num_tickets(ssl, 0);
  } catch (const std::bad_alloc&) {  // the handshake fails like one without a challenge
  }
  return SSL_CLIENT_HELLO_SUCCESS;
}

int choose_acme(SSL*, const unsigned char** out, unsigned char* size, const unsigned char*, unsigned, void*) {
  *out = reinterpret_cast<const unsigned char*>(kAcmeTls.data());
  *size = static_cast<unsigned char>(kAcmeTls.size());
  return SSL_TLSEXT_ERR_OK;
}

// Replaces the callback of the listener's context, which would choose a certificate by the requested name.
// Keeps the certificate of the challenge.
int keep_context(SSL*, int*, void*) {
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

void Challenges::set(Pending pending) {
  const std::lock_guard lock(mutex_);
  pending_ = std::move(pending);
  count_.store(pending_.texts.size() + pending_.contexts.size(), std::memory_order_release);
}

std::optional<std::string> Challenges::answer_to(std::string_view path) const {
  constexpr std::string_view kFolder = "/.well-known/acme-challenge/";
  if (!path.starts_with(kFolder)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = pending_.texts.find(path.substr(kFolder.size()));
  return found != pending_.texts.end() ? std::optional(found->second) : std::nullopt;
}

Challenges::Context Challenges::context_for(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.contexts.find(name);
  return found != pending_.contexts.end() ? found->second : nullptr;
}

base::Result<Challenges::Context> make_challenge_context(const std::string& pem) {
  ERR_clear_error();
  const auto source = [&] { return PemText(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); };
  const OwnedKey key(PEM_read_bio_PrivateKey(source().get(), nullptr, nullptr, nullptr));
  const OwnedCertificate certificate(PEM_read_bio_X509(source().get(), nullptr, nullptr, nullptr));
  Challenges::Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!key || !certificate || !context || SSL_CTX_use_certificate(context.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1)
    return last_tls_error("OpenSSL");
  SSL_CTX_set_alpn_select_cb(context.get(), choose_acme, nullptr);
  SSL_CTX_set_tlsext_servername_callback(context.get(), keep_context);
  return context;
}

void answer_challenges(SSL_CTX* context, std::shared_ptr<const Challenges> challenges) {
  const auto* argument = challenges.get();
  auto held = std::make_unique<Held>(std::move(challenges));
  if (SSL_CTX_set_ex_data(context, challenges_slot(), held.get()) != 1) throw std::bad_alloc();
  static_cast<void>(held.release());  // the context owns it now
  SSL_CTX_set_client_hello_cb(context, look_at_hello, const_cast<Challenges*>(argument));
}

}  // namespace weir::net
