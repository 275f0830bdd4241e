// Compares two descriptions of configurations, as describe() in settings.hpp returns them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

struct Settings;

// Returns the differences in the order of the texts, each once:
// - "no longer: LINE" for each line that only `before` has;
// - "now: LINE" for each line that only `now` has;
// - "now in this order: …" for routes, or overrides of a rule, that changed places. The first match decides.
// An indented line is reported together with the label of its parent. A rule appears under many routes, so
// its line is reported without a route. If a rule that both texts have applies to another route than before,
// the pair is reported. Blank lines are ignored. Runs in time linear in the length of the texts.
[[nodiscard]] std::vector<std::string> differences(std::string_view before, std::string_view now);

// Returns what differs and no description shows, without repeating it: which keys the keys file has and what
// it says of them, the key of tokens, the path and credentials of webhooks.
[[nodiscard]] std::vector<std::string> unshown_differences(const Settings& before, const Settings& now);

}  // namespace weir::config
