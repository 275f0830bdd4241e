// The order of requests if not all can proceed: in the shaper, and when load is shed.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/limit/charge.hpp"
#include "weir/policy/match.hpp"
#include "weir/policy/route.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace weir::policy {

// The priorities of tiers; a tier that is missing here has none.
using TierPriorities = std::map<std::string, Priority, std::less<>>;

// Returns the priority of the request's tier, otherwise that of the route: a paid tier counts the same on all
// routes. `route` is null if none matched.
[[nodiscard]] Priority priority_of(const Request& request, const Route* route, const TierPriorities& tiers);

// Returns the name of a client in a queue: its turn among equal priorities and its places in the queue. It is
// the digest of `api_key|user|ip`. An API key counts only if the keys file has it. Otherwise a client could
// invent keys, count as many clients and displace others.
[[nodiscard]] limit::Key name_client(const Request& request, base::SipKey key) noexcept;

}  // namespace weir::policy
