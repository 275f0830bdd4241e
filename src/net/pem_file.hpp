// Why a PEM file is of no use, in words.
#pragma once

#include "weir/base/result.hpp"

#include <cstdint>
#include <string>

namespace weir::net {

enum class PemKind : std::uint8_t { Certificate, PrivateKey, Authorities };

// Of a file of which OpenSSL has taken nothing of that kind, right after it said so: its queue of errors is
// used up. `what`: how the error calls it, as "the certificate".
[[nodiscard]] base::Error pem_error(const std::string& what, const std::string& file, PemKind wanted);

}  // namespace weir::net
