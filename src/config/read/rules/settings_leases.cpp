// Reads `lease` of a [[rule]]: how many units a weir may prefetch from Redis.
#include "config/read/settings_sections.hpp"

#include "weir/redis/shared_grants.hpp"

#include <charconv>

namespace weir::config {

namespace {

constexpr std::uint32_t kMostPercent = 25;

// Returns why weir must not take units of this rule from Redis in advance (`lease`). Returns an empty text if
// it may.
std::string obstacle_to_lease(const policy::Rule& rule) {
  if (rule.store != policy::Store::Redis)
    return "found in a rule that is kept in memory and needs no lease; expected store = \"redis\"";
  if (rule.mode == policy::Mode::Shadow)
    return "found in a shadow rule, which must charge exactly as if it were enforced; expected mode = "
           "\"enforce\"";
  if (rule.settlement)
    return "found beside a cost or charge that depends on the response; expected one of them";
  if (is_elastic(rule))
    return "found beside elastic (of the rule, a tier or an override); expected one of them";
  if (rule.penalty)
    return "found beside penalty, which needs Redis to see every refusal; expected one of them";
  if (redis::can_be_leased(rule.limiter)) return {};
  if (limit::holds(rule.limiter))
    return "found beside an algorithm that counts requests in flight; expected an algorithm that counts over "
           "time";
  if (std::holds_alternative<limit::LeakyBucket>(*rule.limiter))
    return "found beside leaky_bucket, which schedules each request after the one before; expected "
           "token_bucket, "
           "gcra, fixed_window or sliding_window";
  if (std::holds_alternative<limit::SlidingLog>(*rule.limiter))
    return "found beside sliding_log, which stores the time of each request; expected sliding_window";
  return "found beside refill = \"stepwise\", whose periods start with the first request; expected "
         "refill = \"continuous\"";
}

std::optional<policy::Lease> lease_of(std::int64_t units, std::int64_t most) {
  if (units < 1 || units > most) return std::nullopt;
  return policy::Lease{.percent = 0, .units = static_cast<limit::Cost>(units)};
}

std::optional<policy::Lease> lease_of(std::string_view text) {
  policy::Lease lease;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, lease.percent);
  const bool good = parsed.ec == std::errc{} && std::string_view(parsed.ptr, end) == "%" &&
                    lease.percent >= 1 && lease.percent <= kMostPercent;
  return good ? std::optional(lease) : std::nullopt;
}

}  // namespace

void read_lease(const TableReader& table, bool numbers_are_sound, policy::Rule& rule) {
  const auto* node = table.node("lease");
  if (node == nullptr) return;
  const auto* units = std::get_if<std::int64_t>(&node->value);
  const auto* text = node->text();
  const auto most = static_cast<std::int64_t>(limit::quota(rule.limiter) / 4);
  const auto expected =
      "; expected a share from \"1%\" to \"25%\", or a number up to a quarter of the limit, or of the "
      "burst, " +
      std::to_string(most);
  if (units == nullptr && text == nullptr)
    return table.mistake("lease", "found " + std::string(type_name(*node)) + expected);
  if (const auto why = obstacle_to_lease(rule); !why.empty()) return table.mistake("lease", why);
  if (!numbers_are_sound) return;  // after a mistake the limiter has arbitrary numbers
  const auto found = "found " + (units != nullptr ? std::to_string(*units) : in_quotes(*text));
  const auto lease = units != nullptr ? lease_of(*units, most) : lease_of(*text);
  if (!lease) return table.mistake("lease", found + expected);
  const auto taken = policy::units_of(*lease, rule.limiter);
  if (taken < 2)
    return table.mistake(
        "lease", found + " of " + std::to_string(limit::quota(rule.limiter)) +
                     ", which is less than two units and saves no call to Redis; expected more, or no lease");
  if (taken / 2 < rule.cost && rule.cost > 1)
    return table.mistake("lease", found + (units != nullptr ? "" : ", " + std::to_string(taken) + " units") +
                                      ", which is less than two requests of cost " +
                                      std::to_string(rule.cost) +
                                      " and saves no call to Redis; expected more, or no lease");
  rule.lease = lease;
}

}  // namespace weir::config
