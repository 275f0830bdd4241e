// The priority of a request. A request of better priority leaves a rule's queue earlier, and weir rejects it
// only under a higher load.
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

// The priorities of tiers. A tier without an entry has no priority of its own.
using TierPriorities = std::map<std::string, Priority, std::less<>>;

// Returns the priority of the request's tier. If the tier has no priority of its own, returns the priority of
// the route. So a tier with a priority has the same priority on all routes. `route` is null if no route
// matched.
[[nodiscard]] Priority priority_of(const Request& request, const Route* route, const TierPriorities& tiers);

// Returns the name of a client in a queue: the digest of `api_key|user|ip`. The queue uses the name to
// alternate between clients of equal priority, and to count each client's queued requests. An API key is used
// only if the keys file has the key. Otherwise a client could invent keys, appear as many clients and delay
// other clients.
[[nodiscard]] limit::Key name_client(const Request& request, base::SipKey key) noexcept;

}  // namespace weir::policy
