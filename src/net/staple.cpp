#include "net/staple.hpp"

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

}  // namespace

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

}  // namespace weir::net
