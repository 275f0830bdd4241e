// The authority's word on a certificate, sent with it so that clients need not ask (OCSP stapling: RFC 6066
// §8).
#pragma once

#include "weir/base/result.hpp"

#include <chrono>
#include <string>

#include <openssl/ssl.h>

namespace weir::net {

struct Staple {
  std::string der;                 // an OCSPResponse (RFC 6960 §4.2.1)
  std::chrono::sys_seconds until;  // its nextUpdate: later it is worth nothing, and not sent
};

// Reads the file; an error where it is none, or speaks of another certificate. One that is out of date is no
// error: it is a duty of whoever fetches it, and weir serves without.
[[nodiscard]] base::Result<Staple> read_staple(const std::string& file, X509* certificate);

}  // namespace weir::net
