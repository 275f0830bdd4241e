// Which of a rule's limiters applies to a request: that of an override, of a tier or of the rule itself.
#pragma once

#include "weir/policy/rule.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::policy {

// The maximum number of overrides and tiers of a rule together. Their positions must fit
// AppliedLimiter::variant.
inline constexpr std::size_t kMostVariants = 65'534;

// The limiter that a rule applies to one request.
struct AppliedLimiter {
  const limit::Limiter* limiter;     // the limiter to enforce
  const limit::Limiter* advertised;  // what clients see; lower than `limiter` if there is a soft limit
  std::uint16_t variant = 0;         // 0: the rule itself; then come the overrides, then the tiers, in order
  bool elastic = false;              // true: this is the elastic limiter of the variant
  bool paired = false;   // true: the variant has an elastic limiter, too, and both limiters must be charged
  bool counted = false;  // true: this limiter is charged but does not decide
  limit::Factor factor = limit::kWholeFactor;  // the share of the configured limit that `limiter` grants
};
// A variant (the rule itself, an override or a tier) has an even limiter ID. Its elastic limiter has the next
// ID, which is odd.
[[nodiscard]] constexpr limit::LimiterId limiter_id_of(std::uint16_t variant, bool elastic) noexcept {
  return variant * limit::LimiterId{2} + (elastic ? 1 : 0);
}
// Returns the limiter ID of messages, which follows the IDs of all variants.
[[nodiscard]] inline limit::LimiterId message_limiter_id(const Rule& rule) noexcept {
  return limiter_id_of(static_cast<std::uint16_t>(1 + rule.overrides.size() + rule.tiers.size()), false);
}
// Returns the limiter that the rule applies to the request: that of the first matching override, of the
// client's tier, or of the rule itself. The load decides whether this is the elastic limiter. The present
// factor of a rule with `adapt` selects one of the scaled limiters.
[[nodiscard]] AppliedLimiter applied_limiter(const Rule& rule, const Request& request);
// Does the same as applied_limiter(), but ignores overrides that depend on what the client requests, such as
// a path.
[[nodiscard]] AppliedLimiter applied_limiter_of_client(const Rule& rule, const Request& request);

// Returns the limiter of a variant (0: the rule itself). `factor`: used only if the rule has `adapt`.
[[nodiscard]] AppliedLimiter limiter_of(const Rule& rule, std::uint16_t variant, bool elastic,
                                        limit::Factor factor = limit::kWholeFactor);

// Returns the limiter of an elastic pair that is charged but does not decide. REQUIRES: applied.paired.
[[nodiscard]] AppliedLimiter counted_limiter(const Rule& rule, const AppliedLimiter& applied);
// Returns the limiter that this process enforces in place of `applied` while Redis is unavailable. Returns
// `applied` if the rule has no local share.
[[nodiscard]] AppliedLimiter local_limiter(const Rule& rule, const AppliedLimiter& applied);

}  // namespace weir::policy
