#include "weir/admin/recorder.hpp"

#include "admin/metrics/totals.hpp"

#include <algorithm>
#include <optional>

namespace weir::admin {

namespace {

using observe::RuleOutcome;

constexpr std::size_t kOfAll = observe::kVerdicts;
constexpr std::size_t kOfARule = 2;

}  // namespace

Recorder::Recorder() : history_(kOfAll, kKept) {}

void Recorder::record(const Sources& sources, base::TimePoint now) {
  follow(sources);
  std::vector<std::uint64_t> totals;
  totals.reserve(history_.series());
  for (std::size_t i = 0; i < observe::kVerdicts; ++i)
    totals.push_back(total(sources, static_cast<observe::Verdict>(i)));
  for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
    totals.push_back(total(sources, rule, RuleOutcome::Admitted) +
                     total(sources, rule, RuleOutcome::Delayed));
    totals.push_back(total(sources, rule, RuleOutcome::Refused) +
                     total(sources, rule, RuleOutcome::ShadowRefused));
    refusals_[rule].note(totals.back(), now);
  }
  history_.note(totals);
  latest_ = now;
}

void Recorder::follow(const Sources& sources) {
  const auto same = [](const std::string& known, const RuleText& rule) { return known == rule.name; };
  if (std::equal(rules_.begin(), rules_.end(), sources.rules.begin(), sources.rules.end(), same)) return;
  std::vector<std::string> rules;
  std::vector<observe::Streak> refusals;
  std::vector<std::optional<std::size_t>> from{0, 1, 2};
  for (const RuleText& rule : sources.rules) {
    const auto old = std::find(rules_.begin(), rules_.end(), rule.name);
    const auto at = static_cast<std::size_t>(old - rules_.begin());
    const bool known = old != rules_.end();
    for (std::size_t i = 0; i < kOfARule; ++i)
      from.push_back(known ? std::optional(kOfAll + kOfARule * at + i) : std::nullopt);
    refusals.push_back(known ? refusals_[at] : observe::Streak(kPause));
    rules.push_back(rule.name);
  }
  history_.remap(from);
  rules_ = std::move(rules);
  refusals_ = std::move(refusals);
}

}  // namespace weir::admin
