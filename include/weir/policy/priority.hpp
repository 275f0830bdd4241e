// Who goes before whom where not all can go at once: in the shaper, and when load is shed.
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

// The priorities that some tiers have; one without stands for none of its own.
using TierPriorities = std::map<std::string, Priority, std::less<>>;

// A tier's goes before the route's: what somebody pays for is worth the same everywhere. `route`: null where
// none matched.
[[nodiscard]] Priority priority_of(const Request& request, const Route* route, const TierPriorities& tiers);

// Whose turn it is among those of one priority, and whose places in a queue: the digest of `api_key|user|ip`,
// where an API key counts only if the keys file has it. Who invents keys would else be as many clients as it
// likes, and send everybody away.
[[nodiscard]] limit::Key name_client(const Request& request, base::SipKey key) noexcept;

}  // namespace weir::policy
