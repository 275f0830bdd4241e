// A connection to a server.
#pragma once

#include "weir/net/listener.hpp"
#include "weir/net/stream.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::upstream {

// Tries its addresses in turn, TLS included where `tls` says how; `stream` is the one under way, so that it
// can be cancelled, and in the end the one that stands, or none. `fault`: where a TLS handshake failed, why.
// `addresses`, `stream`, `fault` and what `tls` refers to outlive the task.
[[nodiscard]] net::Task<net::ErrorCode> connect_to(net::Executor executor,
                                                   const std::vector<net::RawEndpoint>& addresses,
                                                   std::optional<net::TlsTarget> tls,
                                                   std::unique_ptr<net::Stream>& stream, std::string& fault);

}  // namespace weir::upstream
