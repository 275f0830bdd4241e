// A connection of weir's own making, to a server that has several addresses.
#pragma once

#include "weir/net/listener.hpp"
#include "weir/net/stream.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::net {

// Tries its addresses in turn, TLS included where `tls` says how; each connection begins with `preamble`,
// ahead of TLS. `stream` is the one under way, so that it
// can be cancelled, and in the end the one that stands, or none. `fault`: where a TLS handshake failed, why.
// `addresses`, `preamble`, `stream`, `fault` and what `tls` refers to outlive the task.
[[nodiscard]] Task<ErrorCode> connect_to(Executor executor, const std::vector<RawEndpoint>& addresses,
                                         std::string_view preamble, std::optional<TlsTarget> tls,
                                         std::unique_ptr<Stream>& stream, std::string& fault);

}  // namespace weir::net
