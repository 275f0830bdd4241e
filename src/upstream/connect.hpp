// A connection to a server.
#pragma once

#include "weir/net/listener.hpp"
#include "weir/net/stream.hpp"

#include <memory>
#include <vector>

namespace weir::upstream {

// Tries its addresses in turn; `stream` is the one under way, so that it can be cancelled, and in the end the
// one that stands, or none. `addresses` and `stream` outlive the task.
[[nodiscard]] net::Task<net::ErrorCode> connect_to(net::Executor executor,
                                                   const std::vector<net::RawEndpoint>& addresses,
                                                   std::unique_ptr<net::Stream>& stream);

}  // namespace weir::upstream
