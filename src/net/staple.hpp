// The authority's word on a certificate, sent with it so that clients need not ask (OCSP stapling: RFC 6066
// §8).
#pragma once

#include "weir/base/result.hpp"

#include <chrono>
#include <optional>
#include <string>

#include <openssl/ssl.h>

namespace weir::net {

struct Staple {
  std::string der;                 // an OCSPResponse (RFC 6960 §4.2.1)
  std::chrono::sys_seconds until;  // its nextUpdate: later it is worth nothing, and not sent
};

// Reads the file; an error where it is none. Null where it speaks of another certificate: one that is renewed
// has no response yet. That, or one that is out of date, is for whoever fetches it to mend, and weir serves
// without.
[[nodiscard]] base::Result<std::optional<Staple>> read_staple(const std::string& file, X509* certificate);

}  // namespace weir::net
