#include "weir/policy/priority.hpp"

#include "weir/policy/rule.hpp"

namespace weir::policy {

Priority priority_of(const Request& request, const Route* route, const TierPriorities& tiers) {
  if (!tiers.empty() && !request.client.tier.empty())
    if (const auto tier = tiers.find(request.client.tier); tier != tiers.end()) return tier->second;
  return route != nullptr ? route->priority : kDefaultPriority;
}

// Returns a hash of the client's API key, user or address. Also hashes the kind of this value, so a client
// with the API key "10.0.0.1" differs from a client with that address.
limit::Key name_client(const Request& request, base::SipKey key) noexcept {
  const auto& client = request.client;
  base::SipHash128 hash(key);
  const auto name = [&](Attribute kind, std::string_view value) {
    hash.part(static_cast<std::uint64_t>(kind));
    hash.part(value);
    return hash.digest();
  };
  if (client.key_vouched) return name(Attribute::ApiKey, client.api_key);
  if (!client.user.empty()) return name(Attribute::User, client.user);
  return name(Attribute::Ip, client.network.view());
}

}  // namespace weir::policy
