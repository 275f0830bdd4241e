#include "weir/net/tls_files.hpp"

#include "net/pem_file.hpp"

#include "weir/net/tls_context.hpp"

#include <memory>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace weir::net {

namespace {

constexpr const char* kCertificate = "the certificate";

using Certificate = std::unique_ptr<X509, decltype([](X509* certificate) { X509_free(certificate); })>;
using Key = std::unique_ptr<EVP_PKEY, decltype([](EVP_PKEY* key) { EVP_PKEY_free(key); })>;
using Entries = std::unique_ptr<STACK_OF(X509_INFO), decltype([](STACK_OF(X509_INFO) * entries) {
                                  sk_X509_INFO_pop_free(entries, X509_INFO_free);
                                })>;

// A pass phrase callback for OpenSSL. Supplies no pass phrase, but sets *asked to true.
int note_question(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Certificate next_certificate(BIO* source) {
  bool encrypted = false;
  return Certificate(PEM_read_bio_X509_AUX(source, nullptr, note_question, &encrypted));
}

// Returns true if next_certificate() found nothing because the text has no more certificates.
bool is_end_of_text() {
  const auto error = ERR_peek_last_error();
  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

// Loads the certificate and its chain from a text, as SSL_CTX_use_certificate_chain_file(3) loads them from a
// file.
bool use_chain(SSL_CTX* context, BIO* source) {
  const auto own = next_certificate(source);
  if (!own || SSL_CTX_use_certificate(context, own.get()) != 1 || SSL_CTX_clear_chain_certs(context) != 1)
    return false;
  while (const auto issuer = next_certificate(source))
    if (SSL_CTX_add1_chain_cert(context, issuer.get()) != 1) return false;
  if (!is_end_of_text()) return false;
  ERR_clear_error();
  return true;
}

// Trusts the authorities in a text, as SSL_CTX_load_verify_file(3) trusts those in a file. Returns false if
// the text contains no certificate.
bool trust(SSL_CTX* context, BIO* source) {
  bool encrypted = false;
  const Entries entries(PEM_X509_INFO_read_bio(source, nullptr, note_question, &encrypted));
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  bool has_certificate = false;
  for (int i = 0; i < sk_X509_INFO_num(entries.get()); ++i) {
    const X509_INFO* entry = sk_X509_INFO_value(entries.get(), i);
    if (entry->x509 != nullptr && X509_STORE_add_cert(store, entry->x509) != 1) return false;
    if (entry->crl != nullptr && X509_STORE_add_crl(store, entry->crl) != 1) return false;
    has_certificate = has_certificate || entry->x509 != nullptr;
  }
  return has_certificate;
}

// Returns the position in the file, counted from 1, of the certificate to which the key belongs; 0 if there
// is none.
int place_of(const EVP_PKEY* key, const std::string& file) {
  const auto pem = PemFile::read(kCertificate, file);
  if (!pem) return 0;
  const auto source = pem->source();
  for (int place = 1;; ++place) {
    const auto certificate = next_certificate(source.get());
    if (!certificate) return 0;
    if (X509_check_private_key(certificate.get(), key) == 1) return place;
  }
}

base::Error mismatch(const EVP_PKEY* key, const std::string& file, const std::string& certificate) {
  const auto place = place_of(key, certificate);
  ERR_clear_error();
  return base::Error{"the key \"" + file + "\" does not belong to the certificate \"" + certificate + "\"" +
                     (place > 1 ? ", but to certificate " + std::to_string(place) +
                                      " in that file; put the server's certificate first, then its chain"
                                : "; expected the key of this certificate")};
}

}  // namespace

std::optional<base::Error> take_certificate(SSL_CTX* context, const std::string& file) {
  ERR_clear_error();
  const auto pem = PemFile::read(kCertificate, file);
  if (!pem) return pem.error();
  if (use_chain(context, pem->source().get())) return std::nullopt;
  return pem->error(PemKind::Certificate);
}

std::optional<base::Error> take_private_key(SSL_CTX* context, const std::string& file,
                                            const std::string& certificate) {
  ERR_clear_error();
  const auto pem = PemFile::read("the key", file);
  if (!pem) return pem.error();
  bool encrypted = false;
  const Key key(PEM_read_bio_PrivateKey(pem->source().get(), nullptr, note_question, &encrypted));
  if (encrypted) {
    ERR_clear_error();
    return base::Error{"the key \"" + file +
                       "\" is encrypted; store it without a pass phrase (openssl pkey -in " + file +
                       " -out …), readable only by weir"};
  }
  if (!key) return pem->error(PemKind::PrivateKey);
  if (X509_check_private_key(SSL_CTX_get0_certificate(context), key.get()) != 1)
    return mismatch(key.get(), file, certificate);
  if (SSL_CTX_use_PrivateKey(context, key.get()) == 1) return std::nullopt;
  return pem->error(PemKind::PrivateKey);
}

std::optional<base::Error> take_authorities(SSL_CTX* context, const std::string& whose,
                                            const std::string& file) {
  ERR_clear_error();
  const auto pem = PemFile::read(whose, file);
  if (!pem) return pem.error();
  if (trust(context, pem->source().get())) return std::nullopt;
  return pem->error(PemKind::Authorities);
}

std::optional<base::Error> fault_of_certificate(const std::string& file) {
  const TlsContext context(SSL_CTX_new(TLS_method()));
  return context ? take_certificate(context.get(), file) : std::nullopt;
}

}  // namespace weir::net
