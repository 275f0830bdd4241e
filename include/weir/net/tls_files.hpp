// Loads PEM files into TLS contexts. An error says which file is wrong, what is wrong with it, and how to
// correct it.
#pragma once

#include "weir/base/result.hpp"

#include <optional>
#include <string>

#include <openssl/ssl.h>

namespace weir::net {

// Loads the certificate and its chain from the file into the context. Returns an error, or nullopt on
// success.
[[nodiscard]] std::optional<base::Error> take_certificate(SSL_CTX* context, const std::string& file);

// Loads the private key of the context's certificate, which was loaded from the file `certificate`. Returns
// an error, or nullopt on success. An encrypted key is an error: OpenSSL would prompt for a pass phrase at
// the terminal and block the thread.
[[nodiscard]] std::optional<base::Error> take_private_key(SSL_CTX* context, const std::string& file,
                                                          const std::string& certificate);

// Loads the authorities to trust from the file. Returns an error, or nullopt on success. `whose`: the name of
// these authorities in errors, such as "the servers' authorities".
[[nodiscard]] std::optional<base::Error> take_authorities(SSL_CTX* context, const std::string& whose,
                                                          const std::string& file);

// Returns the error that take_certificate() would return for the file. Needs no context.
[[nodiscard]] std::optional<base::Error> fault_of_certificate(const std::string& file);

}  // namespace weir::net
