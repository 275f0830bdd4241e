// Explains why a PEM file is unusable.
#pragma once

#include "weir/base/result.hpp"

#include <cstdint>
#include <string>

namespace weir::net {

enum class PemKind : std::uint8_t { Certificate, PrivateKey, Authorities };

// Returns the error for a file in which OpenSSL found nothing usable. Must be called right after OpenSSL
// failed; clears OpenSSL's error queue. `what`: the name in the error, such as "the certificate".
[[nodiscard]] base::Error pem_error(const std::string& what, const std::string& file, PemKind wanted);

}  // namespace weir::net
