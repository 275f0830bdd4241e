#include "net/staple.hpp"

#include "net/tls_words.hpp"

#include "weir/net/file.hpp"

#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include <openssl/ocsp.h>

namespace weir::net {

namespace {

using Seconds = std::chrono::sys_seconds;

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* p) const noexcept {
    Free(p);
  }
};
using Response = std::unique_ptr<OCSP_RESPONSE, Freed<OCSP_RESPONSE_free>>;
using Basic = std::unique_ptr<OCSP_BASICRESP, Freed<OCSP_BASICRESP_free>>;

Seconds to_seconds(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return Seconds::max();
  return Seconds(std::chrono::seconds(::timegm(&parts)));
}

// Returns the nextUpdate of the certificate's OCSP response, that is, when weir must have a newer response.
// Returns nullopt if no response is about the certificate.
std::optional<Seconds> next_update(OCSP_BASICRESP* said, X509* certificate) {
  for (int i = 0; i < OCSP_resp_count(said); ++i) {
    OCSP_SINGLERESP* one = OCSP_resp_get0(said, i);
    ASN1_INTEGER* serial = nullptr;
    auto* id = const_cast<OCSP_CERTID*>(OCSP_SINGLERESP_get0_id(one));  // NOLINT: OpenSSL takes no const here
    if (OCSP_id_get0_info(nullptr, nullptr, nullptr, &serial, id) != 1) continue;
    if (ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(certificate)) != 0) continue;
    ASN1_GENERALIZEDTIME* next = nullptr;
    OCSP_single_get0_status(one, nullptr, nullptr, nullptr, &next);
    return to_seconds(next);
  }
  return std::nullopt;
}

// Reads an OCSP response from a file. Returns an error if the file contains none. Returns nullopt if the
// response is about another certificate.
base::Result<std::optional<Staple>> read_staple(const std::string& file, X509* certificate) {
  const auto fault = [&](const std::string& what) {
    return base::Error{"the OCSP response \"" + file + "\" " + what};
  };
  const auto der = read_file(file);
  if (!der) return fault("cannot be read: " + der.error().message);
  const auto* start = reinterpret_cast<const unsigned char*>(der->data());
  const Response response(d2i_OCSP_RESPONSE(nullptr, &start, static_cast<long>(der->size())));
  if (!response) return fault("is not one; expected an OCSP response in DER");
  const Basic said(OCSP_response_get1_basic(response.get()));
  if (OCSP_response_status(response.get()) != OCSP_RESPONSE_STATUS_SUCCESSFUL || !said)
    return fault("contains only an error of the authority");
  const auto until = next_update(said.get(), certificate);
  if (!until) return std::optional<Staple>();
  unsigned char* bytes = nullptr;
  const int size = i2d_OCSP_RESPONSE(response.get(), &bytes);
  if (size <= 0) return fault("cannot be encoded");
  Staple staple{.der = std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)),
                .until = *until};
  OPENSSL_free(bytes);
  return std::optional(std::move(staple));
}

// Returns the index of the X509 object's extra data where the certificate's OCSP response (staple) is stored.
int staple_slot() {
  static const int slot = X509_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* staple, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<Staple*>(staple); });
  return slot;
}

}  // namespace

const Staple* staple_of(const X509* certificate) noexcept {
  return static_cast<const Staple*>(X509_get_ex_data(certificate, staple_slot()));
}

int staple_response(SSL* ssl, void*) {
  const auto* staple = staple_of(SSL_get_certificate(ssl));
  if (staple == nullptr ||
      staple->until <= std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()))
    return SSL_TLSEXT_ERR_NOACK;
  auto* copy = static_cast<unsigned char*>(OPENSSL_memdup(staple->der.data(), staple->der.size()));
  if (copy == nullptr) return SSL_TLSEXT_ERR_NOACK;
  SSL_set_tlsext_status_ocsp_resp(ssl, copy, static_cast<long>(staple->der.size()));
  return SSL_TLSEXT_ERR_OK;
}

std::optional<base::Error> add_staple(X509* certificate, const std::string& file) {
  auto read = read_staple(file, certificate);
  if (!read) return read.error();
  if (!*read) return std::nullopt;  // the OCSP response is about another certificate
  auto staple = std::make_unique<Staple>(std::move(**read));
  if (X509_set_ex_data(certificate, staple_slot(), staple.get()) != 1) return last_tls_error("OpenSSL");
  static_cast<void>(staple.release());  // the certificate owns the object now
  return std::nullopt;
}

}  // namespace weir::net
