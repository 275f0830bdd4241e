// Compares two descriptions of configurations, in the form that describe() in settings.hpp returns. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

struct Settings;

// Returns the differences in the order of the texts, each difference once:
// - "no longer: LINE" for each line that only `before` has;
// - "now: LINE" for each line that only `now` has;
// - "now in this order: …" if routes, or the overrides of a rule, have another order. Their order matters,
//   because the first match decides.
//
// A line that is indented is reported with the label of its parent line, which is the text before ": ". The
// lines of a rule are reported without a route, because the rule may appear under many routes. If a rule now
// applies to other routes, reports each added or removed pair of route and rule. Ignores blank lines. The
// time is linear in the length of the texts.
[[nodiscard]] std::vector<std::string> differences(std::string_view before, std::string_view now);

// Returns differences that describe() does not show: API keys in the keys file and their owners, keys that
// verify tokens, and paths and credentials of webhooks. The result contains no secrets.
[[nodiscard]] std::vector<std::string> unshown_differences(const Settings& before, const Settings& now);

}  // namespace weir::config
