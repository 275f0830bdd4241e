// Reads and makes certificates and signing requests, with OpenSSL. No I/O, except that OpenSSL reads the
// clock.
#pragma once

#include "weir/acme/jws.hpp"
#include "weir/acme/renewal.hpp"
#include "weir/acme/settings.hpp"
#include "weir/base/result.hpp"

#include <string>
#include <string_view>

namespace weir::acme {

// The facts about a certificate that decide when weir renews it.
struct CertificateInfo {
  Names names;  // DNS names, sorted
  Validity validity;
  bool is_placeholder = false;  // true: a placeholder that weir made itself (make_placeholder)
  // The ID of the certificate in requests for its renewal window (ARI, RFC 9773 §4.1). Empty if the
  // certificate does not say which key signed it.
  std::string ari_id{};
};
// Reads the first certificate of a PEM text.
[[nodiscard]] base::Result<CertificateInfo> read_certificate(std::string_view pem);

// Returns the names sorted and without repetitions, for comparisons with CertificateInfo::names.
[[nodiscard]] Names sorted(Names names);

// Returns a signing request for the names, as DER (RFC 2986).
[[nodiscard]] base::Result<std::string> make_signing_request(const Key& key, const Names& names);

// Returns a placeholder: a self-signed certificate for the names, with its key in front, as PEM. weir uses it
// until the authority has issued a certificate. Clients reject it, because no authority signed it.
[[nodiscard]] base::Result<std::string> make_placeholder(const Names& names);

// Returns the certificate, with its key in front, that answers a TLS-ALPN-01 challenge (RFC 8737 §3).
[[nodiscard]] base::Result<std::string> make_challenge_certificate(const std::string& name,
                                                                   std::string_view key_authorization);

// Returns what is wrong with a certificate chain from the authority; empty if nothing is wrong. The chain
// must begin with a certificate of `key` for exactly `names` that has not expired. All certificates must be
// readable.
[[nodiscard]] std::string fault_in_chain(std::string_view pem, const Key& key, const Names& names);

}  // namespace weir::acme
