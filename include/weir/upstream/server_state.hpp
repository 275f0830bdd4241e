// ServerState is what weir has learned about one server: its health, its present addresses, and its requests
// in flight. The server groups before and after a reload share it, and all workers use it.
#pragma once

#include "weir/net/listener.hpp"
#include "weir/upstream/outage_log.hpp"
#include "weir/upstream/server_health.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace weir::upstream {

// The addresses of one server, to be tried in this order. Empty if no look-up of the server's name has
// succeeded yet.
using Addresses = std::vector<net::RawEndpoint>;

struct ServerState {
  explicit ServerState(Addresses at_first);

  // Copies of values of `server_health`, for readers that do not lock the mutex. The times are in
  // microseconds since the epoch.
  alignas(64) std::atomic<base::Duration::rep> ejected_until{0};
  std::atomic<base::Duration::rep> open_to_all_from{0};
  std::atomic<base::Duration::rep> readmitted_at{0};
  std::atomic<bool> suspect{false};
  std::atomic<std::uint32_t> address_changes{0};        // number of times that `addresses` changed
  alignas(64) std::atomic<std::uint32_t> in_flight{0};  // updated only if `max_in_flight` is set
  std::mutex mutex;
  ServerHealth server_health;                  // protected by the mutex
  std::uint64_t failures = 0;                  // protected by the mutex
  OutageLog outages;                           // protected by the mutex
  std::uint64_t random;                        // protected by the mutex
  std::shared_ptr<const Addresses> addresses;  // protected by the mutex
  std::size_t first = 0;                       // index into `addresses`; protected by the mutex
};

}  // namespace weir::upstream
