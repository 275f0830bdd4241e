// Definitions that the server side and the client side of TLS share.
#pragma once

#include "weir/base/result.hpp"

#include <array>
#include <string>

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace weir::net {

// The ciphers for TLS 1.2 (RFC 9325 §4.2). For TLS 1.3, weir uses OpenSSL's defaults.
inline constexpr auto kCiphers12 =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

// Returns an error with the text `what` and the last error in OpenSSL's queue.
inline base::Error last_tls_error(const std::string& what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_peek_last_error(), text.data(), text.size());
  ERR_clear_error();
  return base::Error{what + ": " + text.data()};
}

}  // namespace weir::net
