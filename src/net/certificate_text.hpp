// The certificate of a client as text.
#pragma once

#include <string>

#include <openssl/ssl.h>

namespace weir::net {

// Returns the certificate that the peer showed and that was verified. Null if there is none.
[[nodiscard]] const X509* verified_certificate(const SSL* ssl) noexcept;

// Returns the subject in the form of RFC 4514, in ASCII: "CN=billing,O=Example". Empty without a certificate.
[[nodiscard]] std::string subject_text(const X509* certificate);

// Returns the certificate's DER as RFC 9440 writes it in a header field: base64 between two colons, which is
// a byte sequence of structured fields (RFC 8941 §3.3.5). Empty without a certificate.
[[nodiscard]] std::string byte_sequence(const X509* certificate);

}  // namespace weir::net
