#include "weir/net/tls_client_files.hpp"

#include <cstdlib>
#include <ctime>
#include <string>

#include <openssl/x509.h>

namespace weir::net {

namespace {

// Returns the file that SSL_CTX_set_default_verify_paths(3) uses.
std::string file_of_system_authorities() {
  const char* named = ::secure_getenv(X509_get_default_cert_file_env());
  return named != nullptr ? named : X509_get_default_cert_file();
}

std::chrono::sys_seconds not_after(const X509* certificate) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts) != 1) return {};
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
}

}  // namespace

FileStamps stamps_of(const TlsClientSettings& settings) {
  FileStamps stamps{stamp_of(settings.cert), stamp_of(settings.key)};
  if (settings.verify)
    stamps.push_back(stamp_of(settings.ca.empty() ? file_of_system_authorities() : settings.ca));
  return stamps;
}

base::Result<OwnCertificate> try_files(const TlsClientSettings& settings) {
  const auto made = make_tls_client_context(settings);
  if (!made) return made.error();
  const X509* certificate = SSL_CTX_get0_certificate(made->get());
  OwnCertificate own;
  if (certificate != nullptr) own.not_after = not_after(certificate);
  return own;
}

}  // namespace weir::net
