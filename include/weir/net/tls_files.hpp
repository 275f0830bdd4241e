// Loads PEM files into TLS contexts. An error says which file is wrong, how, and what to do, for the person
// who configured it.
#pragma once

#include "weir/base/result.hpp"

#include <optional>
#include <string>

#include <openssl/ssl.h>

namespace weir::net {

// Loads the certificate, then its chain.
[[nodiscard]] std::optional<base::Error> take_certificate(SSL_CTX* context, const std::string& file);

// Loads the private key of the context's certificate, which came from `certificate`. An encrypted key is an
// error: OpenSSL would prompt for a pass phrase at the terminal and block the thread.
[[nodiscard]] std::optional<base::Error> take_private_key(SSL_CTX* context, const std::string& file,
                                                          const std::string& certificate);

// Loads the authorities to trust. `whose`: their name in errors, such as "the servers' authorities".
[[nodiscard]] std::optional<base::Error> take_authorities(SSL_CTX* context, const std::string& whose,
                                                          const std::string& file);

// Returns the error of take_certificate() without a context.
[[nodiscard]] std::optional<base::Error> fault_of_certificate(const std::string& file);

}  // namespace weir::net
