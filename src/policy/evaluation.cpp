#include "weir/policy/evaluation.hpp"

#include <algorithm>
#include <cassert>

namespace weir::policy {

bool Bill::add(const Line& line, const limit::Charge& charge) {
  if (charges_.size() == limit::kMaxCharges) return false;
  charges_.push_back(charge);
  lines_.push_back(line);
  outcomes_.emplace_back();
  return true;
}

void Bill::clear() noexcept {
  charges_.clear();
  lines_.clear();
  outcomes_.clear();
}

const Rule* Evaluation::collect(std::span<const Rule> rules, const Request& request, const NamingKeys& keys) {
  local.clear();
  remote.clear();
  for (const Rule& rule : rules) {
    if (!rule.match.holds(request)) continue;
    const bool here = rule.store == Store::Memory;
    const bool enforced = rule.mode == Mode::Enforce;
    const auto applied = applied_limiter(rule, request);
    const auto key = name_key(rule, applied.variant, request, here ? keys.table : keys.shared);
    if (!key) {
      if (rule.on_missing != OnMissing::Reject || !enforced) continue;
      local.clear();
      remote.clear();
      return &rule;
    }
    [[maybe_unused]] const bool added =
        (here ? local : remote)
            .add({&rule, applied}, {*key, applied.limiter, rule.cost, rule.index, enforced});
    assert(added);
  }
  return nullptr;
}

const Rule* Evaluation::fall_back(const Request& request, const NamingKeys& keys, Bill& fallback) const {
  const auto charges = remote.charges();
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Rule& rule = *remote.line(i).rule;
    if (charges[i].enforced && rule.on_store_failure == OnStoreFailure::Closed) return &rule;
  }
  for (std::size_t i = 0; i < charges.size(); ++i) {
    auto [rule, applied] = remote.line(i);
    if (rule->on_store_failure != OnStoreFailure::Local) continue;
    if (applied.local_share != nullptr) applied.limiter = applied.local_share;
    const auto key = name_key(*rule, applied.variant, request, keys.table);
    assert(key);  // it had a name in Redis, of the same parts
    auto charge = charges[i];
    charge.key = *key;
    charge.limiter = applied.limiter;
    [[maybe_unused]] const bool added = fallback.add({rule, applied}, charge);
    assert(added);
  }
  return nullptr;
}

namespace {

__extension__ using Product = unsigned __int128;

struct Answer {
  const Rule* rule = nullptr;
  const limit::Limiter* limiter = nullptr;
  const limit::Outcome* outcome = nullptr;
};

// Whether `a` has the smaller share of its quota left: remaining / quota, compared without dividing. A quota
// of nothing (a leaky bucket without a queue) has nothing left.
bool tighter(const Answer& a, const Answer& b) noexcept {
  const auto quota_a = std::max<std::uint64_t>(limit::quota_of(*a.limiter, *a.outcome), 1);
  const auto quota_b = std::max<std::uint64_t>(limit::quota_of(*b.limiter, *b.outcome), 1);
  return Product{a.outcome->remaining} * quota_b < Product{b.outcome->remaining} * quota_a;
}

// The answers that speak for all, as far as they have been heard.
class Spokesmen {
 public:
  void hear(const Answer& answer) noexcept {
    if (!answer.outcome->allowed) {
      if (!refusal_.outcome || answer.outcome->retry_after > refusal_.outcome->retry_after) refusal_ = answer;
      return;
    }
    if (answer.outcome->delay > (slowest_.outcome ? slowest_.outcome->delay : base::Duration{0}))
      slowest_ = answer;
    if (!tightest_.outcome || tighter(answer, tightest_)) tightest_ = answer;
  }

  [[nodiscard]] Decision decision(base::TimePoint now) const noexcept {
    Decision decision;
    if (refusal_.outcome) {
      decision.verdict = Verdict::Reject;
    } else if (slowest_.outcome) {
      decision.verdict = Verdict::Delay;
      decision.start_at = now + slowest_.outcome->delay;
      decision.delayed_by = slowest_.rule;
    }
    const Answer& speaker = refusal_.outcome ? refusal_ : tightest_;
    if (!speaker.outcome) return decision;
    decision.rule = speaker.rule;
    decision.limiter = speaker.limiter;
    decision.outcome = *speaker.outcome;
    return decision;
  }

 private:
  Answer refusal_, slowest_, tightest_;
};

}  // namespace

Decision decide(std::span<const Bill* const> bills, base::TimePoint now) noexcept {
  Spokesmen spokesmen;
  for (const Bill* bill : bills) {
    const auto outcomes = bill->outcomes();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (!bill->charges()[i].enforced) continue;
      spokesmen.hear({bill->line(i).rule, bill->line(i).applied.limiter, &outcomes[i]});
    }
  }
  return spokesmen.decision(now);
}

}  // namespace weir::policy
