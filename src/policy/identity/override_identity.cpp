#include "policy/identity/override_identity.hpp"

#include "weir/base/siphash.hpp"

#include <string>
#include <unordered_map>

namespace weir::policy {

std::vector<std::uint64_t> override_identities(const Rule& rule) {
  std::vector<std::uint64_t> identities;
  identities.reserve(rule.overrides.size());
  std::unordered_map<std::string, std::uint64_t> alike;
  for (const auto& variant : rule.overrides) {
    auto text = variant.match.describe();
    base::SipHash128 hash({});
    hash.part(text);
    hash.part(alike[std::move(text)]++);
    identities.push_back(hash.digest().lo);
  }
  return identities;
}

}  // namespace weir::policy
