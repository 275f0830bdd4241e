// Compares the peer of a connection with the addresses that a server has now.
#pragma once

#include "weir/net/stream.hpp"
#include "weir/upstream/resolution.hpp"

#include <algorithm>

namespace weir::upstream {

// Returns true if the stream leads to one of the addresses. Costs a system call.
[[nodiscard]] inline bool leads_to(const net::Stream& stream, const Addresses& addresses) noexcept {
  const auto peer = net::remote_endpoint(stream.native_handle());
  return std::find(addresses.begin(), addresses.end(), peer) != addresses.end();
}

}  // namespace weir::upstream
