#include "weir/net/tls_files.hpp"

#include "net/pem_file.hpp"

#include "weir/net/tls_context.hpp"

#include <memory>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace weir::net {

namespace {

using Source = std::unique_ptr<BIO, decltype([](BIO* bio) { BIO_free(bio); })>;
using Certificate = std::unique_ptr<X509, decltype([](X509* certificate) { X509_free(certificate); })>;
using Key = std::unique_ptr<EVP_PKEY, decltype([](EVP_PKEY* key) { EVP_PKEY_free(key); })>;

// OpenSSL's pass phrase callback. Supplies no pass phrase, and records that OpenSSL asked for one.
int note_question(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Key read_key(const std::string& file, bool& encrypted) {
  const Source source(BIO_new_file(file.c_str(), "r"));
  return Key(source ? PEM_read_bio_PrivateKey(source.get(), nullptr, note_question, &encrypted) : nullptr);
}

// Returns the position in the file, counted from 1, of the certificate to which the key belongs; 0 if there
// is none.
int place_of(const EVP_PKEY* key, const std::string& file) {
  const Source source(BIO_new_file(file.c_str(), "r"));
  for (int place = 1; source; ++place) {
    const Certificate certificate(PEM_read_bio_X509(source.get(), nullptr, nullptr, nullptr));
    if (!certificate) break;
    if (X509_check_private_key(certificate.get(), key) == 1) return place;
  }
  return 0;
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
  if (SSL_CTX_use_certificate_chain_file(context, file.c_str()) == 1) return std::nullopt;
  return pem_error("the certificate", file, PemKind::Certificate);
}

std::optional<base::Error> take_private_key(SSL_CTX* context, const std::string& file,
                                            const std::string& certificate) {
  ERR_clear_error();
  bool encrypted = false;
  const auto key = read_key(file, encrypted);
  if (encrypted) {
    ERR_clear_error();
    return base::Error{"the key \"" + file +
                       "\" is encrypted; store it without a pass phrase (openssl pkey -in " + file +
                       " -out …), readable only by weir"};
  }
  if (!key) return pem_error("the key", file, PemKind::PrivateKey);
  if (X509_check_private_key(SSL_CTX_get0_certificate(context), key.get()) != 1)
    return mismatch(key.get(), file, certificate);
  if (SSL_CTX_use_PrivateKey(context, key.get()) == 1) return std::nullopt;
  return pem_error("the key", file, PemKind::PrivateKey);
}

std::optional<base::Error> take_authorities(SSL_CTX* context, const std::string& whose,
                                            const std::string& file) {
  ERR_clear_error();
  if (SSL_CTX_load_verify_file(context, file.c_str()) == 1) return std::nullopt;
  return pem_error(whose, file, PemKind::Authorities);
}

std::optional<base::Error> fault_of_certificate(const std::string& file) {
  const TlsContext context(SSL_CTX_new(TLS_method()));
  return context ? take_certificate(context.get(), file) : std::nullopt;
}

}  // namespace weir::net
