// Tries each kind of operation that weir needs on a Redis server.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/redis/inspection.hpp"

namespace weir::redis {

// Runs each of weir's operations (charge, refund, renew and so on) on each form of state: numbers, logs, and
// permits. Adds the errors to the obstacles of `found`. Runs the loop until all replies have come, but at
// most for a few seconds. Throws std::runtime_error if the system provides no random numbers.
void try_operations(net::asio::io_context& loop, const RedisSettings& settings, Inspection& found);

}  // namespace weir::redis
