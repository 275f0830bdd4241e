#include "server/adaptation.hpp"

#include "weir/base/units.hpp"

#include <algorithm>
#include <utility>

namespace weir::server {

Adaptation::Adaptation(net::Executor executor, limit::Factors& factors, AnswersSoFar answers_so_far,
                       log::Log& log)
    : timer_(executor), factors_(factors), answers_so_far_(std::move(answers_so_far)), log_(log) {}

void Adaptation::watch(const proxy::Configuration& config) {
  std::vector<Watched> rules;
  for (const auto& rule : config.rules) {
    if (!rule.adapt) continue;
    const auto same = std::find_if(rules_.begin(), rules_.end(), [&](const Watched& before) {
      return before.name == rule.name && before.adapt == *rule.adapt;
    });
    if (same == rules_.end()) factors_.set(rule.index, limit::kWholeFactor);
    const auto upstream = std::find_if(config.upstreams.begin(), config.upstreams.end(),
                                       [&](const auto& one) { return one.name == rule.adapt->upstream; });
    const auto index =
        config.index_of_upstream(static_cast<std::size_t>(upstream - config.upstreams.begin()));
    rules.push_back({.name = rule.name,
                     .index = rule.index,
                     .adapt = *rule.adapt,
                     .upstream = index,
                     .before = answers_so_far_(index)});
  }
  rules_ = std::move(rules);
  if (!rules_.empty() && !is_armed_) arm();
}

void Adaptation::arm() {
  is_armed_ = true;
  timer_.expires_after(limit::kAdaptPeriod);
  timer_.async_wait([this](const net::ErrorCode& error) {
    is_armed_ = false;
    if (error || rules_.empty()) return;
    end_period();
    arm();
  });
}

void Adaptation::end_period() {
  for (auto& rule : rules_) {
    const auto all = answers_so_far_(rule.upstream);
    const auto& past = rule.before;
    const limit::UpstreamAnswers answers{.all = all.all - past.all,
                                         .failed = all.failed - past.failed,
                                         .measured = all.measured - past.measured,
                                         .time = all.time - past.time};
    rule.before = all;
    const auto before = factors_.of(rule.index);
    const auto now = limit::adapted(rule.adapt.terms, answers, before);
    factors_.set(rule.index, now);
    log_factor(rule, answers, before, now);
  }
}

// Logs when a rule begins to grant less than its whole limit, and when it grants the whole limit again. Logs
// no change in between.
void Adaptation::log_factor(const Watched& rule, const limit::UpstreamAnswers& answers, limit::Factor before,
                            limit::Factor now) {
  if ((before == limit::kWholeFactor) == (now == limit::kWholeFactor)) return;
  if (now == limit::kWholeFactor)
    return log_.info("adapt: rule \"" + rule.name + "\" grants its whole limit again");
  const auto mean = answers.measured != 0 ? answers.time / static_cast<base::Duration::rep>(answers.measured)
                                          : base::Duration{0};
  log_.warning("adapt: upstream \"" + rule.adapt.upstream + "\" is unwell (" +
               std::to_string(answers.failed) + " of " + std::to_string(answers.all) +
               " requests failed, mean time " +
               base::to_string(std::chrono::floor<std::chrono::milliseconds>(mean)) + "); rule \"" +
               rule.name + "\" grants " + std::to_string(limit::percent_of(now)) + "% of its limit");
}

}  // namespace weir::server
