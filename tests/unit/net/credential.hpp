// Certificates and keys that tests make in memory.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace weir::net {

inline constexpr long kHour = 3600;

using Subject = std::vector<std::pair<const char*, const char*>>;

// A certificate and its key.
struct Credential {
  std::unique_ptr<X509, decltype(&X509_free)> certificate{X509_new(), X509_free};
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key{EVP_EC_gen("P-256"), EVP_PKEY_free};
};

// Makes a certificate signed by `issuer`, or self-signed if `issuer` is null. The certificate is valid from
// `from` to `until`, in seconds from now.
inline Credential make_credential(const Subject& subject, const Credential* issuer, long from = -kHour,
                                  long until = kHour) {
  Credential made;
  X509* certificate = made.certificate.get();
  X509_set_version(certificate, X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate), from);
  X509_gmtime_adj(X509_getm_notAfter(certificate), until);
  X509_set_pubkey(certificate, made.key.get());
  auto* name = X509_get_subject_name(certificate);
  for (const auto& [kind, value] : subject)
    X509_NAME_add_entry_by_txt(name, kind, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value), -1,
                               -1, 0);
  const auto& signer = issuer != nullptr ? *issuer : made;
  X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate.get()));
  auto* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints,
                                        issuer != nullptr ? "CA:FALSE" : "CA:TRUE");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
  X509_sign(certificate, signer.key.get(), EVP_sha256());
  return made;
}

}  // namespace weir::net
