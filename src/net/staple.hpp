// Reads OCSP responses from files. weir sends a response with its certificate, so that clients need not ask
// the authority (RFC 6066 §8).
#pragma once

#include "weir/base/result.hpp"

#include <chrono>
#include <optional>
#include <string>

#include <openssl/ssl.h>

namespace weir::net {

struct Staple {
  std::string der;                 // an OCSPResponse (RFC 6960 §4.2.1)
  std::chrono::sys_seconds until;  // the nextUpdate of the response, after which weir does not send it
};

// Reads an OCSP response from a file and stores it in `certificate`, which owns it. Returns an error if the
// file contains none. Stores nothing if the response is about another certificate; weir then sends no
// response. This case is no error, because a renewed certificate has no response at first.
[[nodiscard]] std::optional<base::Error> add_staple(X509* certificate, const std::string& file);

// Returns the certificate's OCSP response; null if there is none.
[[nodiscard]] const Staple* staple_of(const X509* certificate) noexcept;

// The callback of SSL_CTX_set_tlsext_status_cb(3): gives OpenSSL a copy of the OCSP response if it is still
// valid. OpenSSL owns the copy.
int staple_response(SSL* ssl, void* unused);

}  // namespace weir::net
