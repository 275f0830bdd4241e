#include "net/certificate_text.hpp"

#include <cstddef>
#include <memory>
#include <vector>

#include <openssl/bio.h>
#include <openssl/evp.h>

namespace weir::net {

const X509* verified_certificate(const SSL* ssl) noexcept {
  const X509* certificate = SSL_get0_peer_certificate(ssl);
  return certificate != nullptr && SSL_get_verify_result(ssl) == X509_V_OK ? certificate : nullptr;
}

std::string subject_text(const X509* certificate) {
  if (certificate == nullptr) return {};
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), BIO_free);
  // RFC 4514 §2.4 allows the escapes of RFC 2253, which OpenSSL writes.
  if (X509_NAME_print_ex(text.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) < 0) return {};
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(text.get(), &bytes);
  return size > 0 ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
}

std::string byte_sequence(const X509* certificate) {
  const int size = certificate != nullptr ? i2d_X509(certificate, nullptr) : 0;
  if (size <= 0) return {};
  std::vector<unsigned char> der(static_cast<std::size_t>(size));
  auto* end = der.data();
  if (i2d_X509(certificate, &end) != size) return {};
  // EVP_EncodeBlock() writes a zero behind the text; the second colon replaces it.
  std::string text(1 + 4 * ((der.size() + 2) / 3) + 1, ':');
  const int written = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()) + 1, der.data(), size);
  text[1 + static_cast<std::size_t>(written)] = ':';
  return text;
}

}  // namespace weir::net
