// What TLS contexts take from PEM files. Errors say in words what is wrong with which file and what to do
// about it, for whoever wrote its name into the configuration.
#pragma once

#include "weir/base/result.hpp"

#include <optional>
#include <string>

#include <openssl/ssl.h>

namespace weir::net {

// The certificate, then its chain.
[[nodiscard]] std::optional<base::Error> take_certificate(SSL_CTX* context, const std::string& file);

// The key of the certificate that the context has, which came from `certificate`. One that is encrypted is an
// error: OpenSSL would ask whoever sits at the terminal for its pass phrase, and all that this thread does
// would wait for the answer.
[[nodiscard]] std::optional<base::Error> take_private_key(SSL_CTX* context, const std::string& file,
                                                          const std::string& certificate);

// Those whose certificates are believed. `whose`: how errors call them, as "the servers' authorities".
[[nodiscard]] std::optional<base::Error> take_authorities(SSL_CTX* context, const std::string& whose,
                                                          const std::string& file);

// What take_certificate() would say, without a context.
[[nodiscard]] std::optional<base::Error> fault_of_certificate(const std::string& file);

}  // namespace weir::net
