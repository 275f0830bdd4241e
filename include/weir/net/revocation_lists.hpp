// Certificate revocation lists (CRL, RFC 5280 §5): which client certificates their authority has revoked.
#pragma once

#include "weir/base/result.hpp"

#include <chrono>
#include <optional>
#include <string>

#include <openssl/ssl.h>

namespace weir::net {

// Loads the lists in the PEM file into the context. Returns an error, or nullopt on success. From then on
// OpenSSL rejects a client if its certificate, or an authority between the certificate and the root, is
// revoked. OpenSSL also rejects a client if the list of one of its authorities is missing or out of date.
//
// Must be called after the context has its authorities. An authority without a list is an error, because all
// its clients would be rejected. A list that its authority did not sign is an error, too.
[[nodiscard]] std::optional<base::Error> take_revocation_lists(SSL_CTX* context, const std::string& file);

// Returns what is wrong with the lists in `file` for the authorities in the file `client_ca`; nullopt if the
// lists are good. `client_ca` must be a good file.
[[nodiscard]] std::optional<base::Error> fault_of_client_crl(const std::string& client_ca,
                                                             const std::string& file);

// Returns the time at which the first of the context's lists expires (nextUpdate). After that time OpenSSL
// rejects all clients of the list's authority. Returns nullopt if the context has no lists, or if no list
// names a time. Must be called before other threads use the context.
[[nodiscard]] std::optional<std::chrono::sys_seconds> revocation_lists_end(SSL_CTX* context);

}  // namespace weir::net
