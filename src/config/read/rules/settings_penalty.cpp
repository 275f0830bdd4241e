// Reads `penalty` of a [[rule]].
#include "config/read/settings_sections.hpp"

#include "weir/base/units.hpp"
#include "weir/config/settings_needs.hpp"

namespace weir::config {

namespace {

// Returns why the rule cannot have a penalty. Returns an empty text if it can.
std::string obstacle_to_penalty(const policy::Rule& rule) {
  if (is_elastic(rule))
    return "found beside elastic (of the rule, a tier or an override); expected one of them";
  if (limit::holds(rule.limiter))
    return "found beside an algorithm that counts requests in flight; expected an algorithm that counts over "
           "time";
  return {};
}

// Returns the duration, which must be from `least` to limit::kMostPenalty. Returns `instead` after a mistake.
base::Duration read_length(const TableReader& table, std::string_view key, base::Duration least,
                           base::Duration instead) {
  const ConfigErrors& mistakes = *table.source_file().mistakes;
  const auto before = mistakes.count();
  const auto length = table.duration(key);
  if (length >= least && length <= limit::kMostPenalty) return length;
  if (table.has(key) && mistakes.count() == before)
    table.mistake(key, "found " + base::to_string(length) + "; expected " + base::to_string(least) + " to " +
                           base::to_string(limit::kMostPenalty));
  return instead;
}

}  // namespace

void read_penalty(const TableReader& rule, policy::Rule& into) {
  if (!rule.has("penalty")) return;
  if (const auto why = obstacle_to_penalty(into); !why.empty()) return rule.mistake("penalty", why);
  const auto table = rule.table("penalty", schema::kPenalty);
  constexpr base::Duration kDay = std::chrono::days(1);
  const auto before = table.source_file().mistakes->count();
  const auto first = read_length(table, "for", limit::kLeastPenalty, limit::kLeastPenalty);
  const auto most = read_length(table, "most", limit::kLeastPenalty, kDay);
  const auto forget = read_length(table, "forget", limit::kLeastPenalty, kDay);
  const bool sound = table.source_file().mistakes->count() == before;
  if (sound && table.has("for") && first > most)
    table.mistake(table.has("most") ? "most" : "for",
                  table.has("most") ? "found " + base::to_string(most) + ", less than for, " +
                                          base::to_string(first) + "; expected that or more"
                                    : "found " + base::to_string(first) +
                                          ", longer than most, which is 1day by default; expected a longer "
                                          "most beside it");
  into.penalty = {.after = static_cast<std::uint32_t>(table.whole("after")),
                  .first = first,
                  .grows = static_cast<std::uint32_t>(table.whole("grows")),
                  .most = std::max(most, first),
                  .forget = forget};
}

}  // namespace weir::config
