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

// Reads an OCSP response from a file. Returns an error if the file contains none. Returns nullopt if the
// response is about another certificate; weir then sends no response. This case is no error, because a
// renewed certificate has no response at first.
[[nodiscard]] base::Result<std::optional<Staple>> read_staple(const std::string& file, X509* certificate);

}  // namespace weir::net
