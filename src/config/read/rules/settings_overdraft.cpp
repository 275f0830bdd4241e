// Reads `overdraft` of a [[rule]].
#include "config/read/settings_sections.hpp"

#include "weir/config/settings_needs.hpp"
#include "weir/limit/settle.hpp"

namespace weir::config {

namespace {

// Returns why the rule cannot charge beyond its limit. Returns an empty text if it can.
std::string obstacle_to_overdraft(const policy::Rule& rule) {
  if (rule.descriptor_keys.empty())
    return "found in a rule that needs no descriptor, so it may limit requests before they take place; "
           "expected a descriptor of questions, such as key = [\"descriptor:user\"]";
  if (limit::holds(rule.limiter))
    return "found beside an algorithm that counts requests in flight; expected an algorithm that counts over "
           "time";
  if (!limit::settles(rule.limiter))
    return "found beside leaky_bucket, which schedules requests before they take place; expected "
           "token_bucket, gcra, fixed_window, sliding_window or sliding_log";
  if (rule.settlement)
    return "found beside a cost or charge that depends on the response; expected one of them";
  if (is_elastic(rule))
    return "found beside elastic (of the rule, a tier or an override); expected one of them";
  if (rule.penalty)
    return "found beside penalty, but a charge that is always taken is no violation; expected one of them";
  if (rule.lease)
    return "found beside lease, but Redis cannot charge units beyond the limit in advance; expected one of "
           "them";
  return {};
}

}  // namespace

void read_overdraft(const TableReader& table, policy::Rule& rule) {
  rule.overdraft = rule.bandwidth.empty() && table.boolean("overdraft");
  if (!rule.overdraft) return;
  if (const auto why = obstacle_to_overdraft(rule); !why.empty()) table.mistake("overdraft", why);
}

}  // namespace weir::config
