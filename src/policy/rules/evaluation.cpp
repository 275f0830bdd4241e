#include "weir/policy/evaluation.hpp"

#include "policy/identity/consistent_value.hpp"
#include "policy/rules/descriptors.hpp"

#include "weir/policy/claims.hpp"
#include "weir/policy/inspection.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <algorithm>
#include <cassert>

namespace weir::policy {

namespace {

// Returns the cost of the request under the rule; 0: the question only checks the limits. Returns nullopt if
// the request states an invalid cost. Under a concurrency limit, a question that states a cost above 0 costs
// Rule::cost.
std::optional<limit::Cost> cost_of(const Rule& rule, const Request& request) {
  const auto& from = rule.cost_from;
  if (request.stated_cost == limit::Cost{0}) [[unlikely]]
    return 0;
  if (from.kind == CostSource::Kind::None)
    return limit::holds(rule.limiter) ? rule.cost : request.stated_cost.value_or(rule.cost);
  if (reads_body(from)) return cost_in_body(from, request.body.text, rule.cost);
  return cost_in_head(from, *request.head, rule.cost);
}

void put(Bill& bill, const ChargeSource& source, const limit::Key& key, limit::Cost cost) {
  const bool enforced = source.rule->mode == Mode::Enforce && !source.applied.counted;
  const auto& lease = source.rule->lease;
  [[maybe_unused]] const bool added =
      bill.add(source, {key, source.applied.limiter, cost, source.rule->rule_number, enforced,
                        limiter_id_of(source.applied.variant, source.applied.elastic),
                        lease ? units_of(*lease, *source.applied.limiter) : 0, source.applied.counted,
                        penalty_of(*source.rule)});
  assert(added);
}

// Returns the value of ChargeSource::descriptors for a charge of the request.
std::uint32_t selected_in(const Request& request) noexcept {
  if (request.descriptor == nullptr) return 0;
  return std::uint32_t{1} << (request.descriptor - request.descriptors.data());
}

// Returns an ambiguity in the values that the rule's overrides or its key read; nullopt if there is none.
std::optional<Ambiguity> ambiguity_met(const Rule& rule, const Request& request) {
  for (const auto& variant : rule.overrides)
    if (const auto found = variant.match.ambiguity(request)) return found;
  return ambiguity_in_key(rule, request);
}

Rejection reject_cost(const Rule& rule, const Request& request) {
  const auto& from = rule.cost_from;
  std::optional<Ambiguity> ambiguity;
  if (from.kind == CostSource::Kind::Header && !value_in_header(*request.head, from.name))
    ambiguity = {"header", from.name};
  if (from.kind == CostSource::Kind::Query && !value_in_query(*request.head, from.name))
    ambiguity = {"query parameter", from.name};
  const auto json = reads_body(from) ? json_fault(from, request.body.text) : JsonFault::None;
  return {.rule = &rule, .ambiguity = ambiguity, .json = json};
}

Rejection reject_key(const Rule& rule, const Request& request) {
  const auto* part = missing_part(rule, request);
  return {.rule = &rule,
          .part = part,
          .token = part != nullptr ? token_fault_behind(*part, request.client) : std::nullopt};
}

}  // namespace

Rejection Evaluation::collect_rule(const Rule& rule, const Request& request, const NamingKeys& keys) {
  Namer namer(request);
  return collect_rule(rule, request, keys, namer);
}

Rejection Evaluation::collect_rule(const Rule& rule, const Request& request, const NamingKeys& keys,
                                   Namer& namer) {
  auto rejection = add_rule(rule, request, keys, namer);
  if (rejection.ambiguity) rejection.excess = request.head->excess();
  return rejection;
}

// Adds the charges of a rule that needs a descriptor. Adds nothing if the rule rejects the question because
// of one of its descriptors.
Rejection Evaluation::add_descriptors(const Rule& rule, const Request& request, const NamingKeys& keys) {
  assert(request.descriptors.size() <= limit::kMaxCharges);
  const auto had_local = local.charges().size();
  const auto had_remote = remote.charges().size();
  for (const auto& descriptor : request.descriptors) {
    if (!may_apply(rule, descriptor)) continue;
    const auto seen = with_descriptor(request, descriptor);
    Namer namer(seen);
    const auto rejection = add_rule(rule, seen, keys, namer);
    if (!rejection) continue;
    local.cut(had_local);
    remote.cut(had_remote);
    return rejection;
  }
  return {};
}

// Adds the charge of a rule for the request, or for the descriptor that is selected. If the rule needs a
// descriptor and none is selected, adds the charges for all descriptors.
Rejection Evaluation::add_rule(const Rule& rule, const Request& request, const NamingKeys& keys,
                               Namer& namer) {
  if (!rule.descriptor_keys.empty() && request.descriptor == nullptr) [[unlikely]]
    return add_descriptors(rule, request, keys);
  if (rule.max_body != 0) {
    const auto hidden = hidden_body(rule, request);
    if (hidden != RequestBody::State::Whole) return {.rule = &rule, .body = hidden};
  }
  if (const auto found = rule.match.ambiguity(request)) return {.rule = &rule, .ambiguity = found};
  if (!rule.match.holds(request)) return {};
  if (const auto found = ambiguity_met(rule, request)) return {.rule = &rule, .ambiguity = found};
  const bool here = rule.store == Store::Memory;
  const auto name = [&](const AppliedLimiter& limiter) {
    return here ? namer.name(rule, limiter, keys.table) : namer.name_in_redis(rule, limiter, keys);
  };
  const auto applied = applied_limiter(rule, request);
  const auto key = name(applied);
  if (!key && rule.on_missing != OnMissing::Reject) return {};
  if (!key) return reject_key(rule, request);
  const auto stated = cost_of(rule, request);
  if (!stated) return reject_cost(rule, request);
  auto& bill = here ? local : remote;
  const ChargeSource source{&rule, applied, selected_in(request), rule.overdraft ? *stated : 0};
  const auto cost = *stated - source.overdraft;
  if (source.descriptors != 0) [[unlikely]]
    if (const auto sum = bill.merge(source, *key, cost))
      return *sum <= limit::kMaxCost ? Rejection{} : reject_cost(rule, request);
  const auto before = local.charges().size() + remote.charges().size() + paced.size();
  if (before + (applied.paired ? 2 : 1) > limit::kMaxCharges) return {.rule = &rule, .too_many_rules = true};
  if (!rule.bandwidth.empty()) {
    paced.push_back({&rule, *key});
    return {};
  }
  put(bill, source, *key, cost);
  if (!applied.paired) return {};
  const auto other = counted_limiter(rule, applied);
  put(bill, {&rule, other, source.descriptors}, *name(other), cost);
  return {};
}

template <class Takes>
Rejection Evaluation::collect_those(RuleList rules, const Request& request, const NamingKeys& keys,
                                    Takes takes) {
  clear();
  Namer namer(request);
  bool has_shadow = false;
  for (const Rule& rule : rules) {
    if (!takes(rule)) continue;
    has_shadow = has_shadow || rule.mode == Mode::Shadow;
    if (rule.mode == Mode::Shadow) continue;
    const auto rejection = collect_rule(rule, request, keys, namer);
    if (!rejection) continue;
    clear();
    return rejection;
  }
  if (!has_shadow) return {};
  for (const Rule& rule : rules)
    if (rule.mode == Mode::Shadow && takes(rule)) static_cast<void>(collect_rule(rule, request, keys, namer));
  return {};
}

Rejection Evaluation::collect(RuleList rules, const Request& request, const NamingKeys& keys) {
  return collect_those(rules, request, keys, [](const Rule&) { return true; });
}

Rejection Evaluation::collect_by_head(RuleList rules, const Request& request, const NamingKeys& keys) {
  return collect_those(rules, request, keys, [&](const Rule& rule) { return !asks_for_body(rule, request); });
}

Rejection Evaluation::collect_unverified(RuleList rules, const Request& request, const NamingKeys& keys) {
  return collect_those(rules, request, keys, [&](const Rule& rule) {
    return !needs_claims(rule, request) && !asks_for_body(rule, request);
  });
}

void Evaluation::collect_paced(RuleList rules, const Request& request, const NamingKeys& keys) {
  (void)collect_those(rules, request, keys, [](const Rule& rule) { return !rule.bandwidth.empty(); });
}

const Rule* Evaluation::fall_back(const Request& request, const NamingKeys& keys, Bill& fallback,
                                  limit::ChargeSet unanswered) const {
  const auto charges = remote.charges();
  const auto asked = [&](std::size_t position) { return (unanswered >> position & 1U) == 0; };
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (asked(i)) continue;
    const Rule& rule = *remote.source(i).rule;
    if (charges[i].enforced && rule.on_store_failure == OnStoreFailure::Closed) return &rule;
  }
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (asked(i)) continue;
    auto source = remote.source(i);
    if (source.rule->on_store_failure != OnStoreFailure::Local) continue;
    source.applied = local_limiter(*source.rule, source.applied);
    const RequestOfCharge seen(request, source.descriptors);
    const auto key = name_key(*source.rule, source.applied, *seen, keys.table);
    assert(key);  // the charge has a name in Redis, so the request has all parts of the key
    auto charge = charges[i];
    charge.key = *key;
    charge.limiter = source.applied.limiter;
    [[maybe_unused]] const bool added = fallback.add(source, charge);
    assert(added);
  }
  return nullptr;
}

namespace {

__extension__ using Product = unsigned __int128;

struct Answer {
  const ChargeSource* source = nullptr;
  const limit::Outcome* outcome = nullptr;
  std::uint64_t margin = 0;  // by how many units the enforced limit exceeds the limit that clients see
  // Units that `outcome` counts as used, although they are not charged, because another charge is refused.
  limit::Cost uncharged = 0;

  [[nodiscard]] const limit::Limiter& advertised() const noexcept { return *source->applied.advertised; }
  [[nodiscard]] limit::Cost remaining() const noexcept {
    const auto left = outcome->remaining + uncharged;
    return left > margin ? left - margin : 0;
  }
};

Answer answer_of(const ChargeSource& source, const limit::Outcome& outcome) noexcept {
  const auto& applied = source.applied;
  const bool same = applied.advertised == applied.limiter;
  return {.source = &source,
          .outcome = &outcome,
          .margin = same ? 0 : limit::quota(*applied.limiter) - limit::quota(*applied.advertised)};
}

// Returns true if the remaining share (remaining / quota) of `a` is smaller than that of `b`. With a quota of
// 0 (a leaky bucket without a queue), the share is 0.
bool tighter(const Answer& a, const Answer& b) noexcept {
  const auto quota_a = std::max<std::uint64_t>(limit::quota_of(a.advertised(), *a.outcome), 1);
  const auto quota_b = std::max<std::uint64_t>(limit::quota_of(b.advertised(), *b.outcome), 1);
  return Product{a.remaining()} * quota_b < Product{b.remaining()} * quota_a;
}

// Returns the time until clients see more remaining units. If a client has used more than the limit that it
// sees (a soft limit), this excess must refill first. If the limiter does not refill units one by one,
// returns the time until all units are refilled.
base::Duration more_after(const Answer& answer) noexcept {
  const auto& outcome = *answer.outcome;
  if (outcome.remaining >= answer.margin) return outcome.more_after;
  const auto* gcra_core = limit::gcra_core(*answer.source->applied.limiter);
  if (gcra_core == nullptr) return outcome.reset_after;
  const auto rate = gcra_core->rate();
  const auto lacking =
      Product{answer.margin - outcome.remaining} * static_cast<std::uint64_t>(rate.period.count());
  const auto rest = static_cast<base::Duration::rep>((lacking + rate.count - 1) / rate.count);
  return outcome.more_after + base::Duration(rest);
}

// Receives the outcomes of the bills one by one. Keeps the outcomes from which decision() makes the decision.
class DecisiveOutcomes {
 public:
  explicit DecisiveOutcomes(base::TimePoint now) noexcept : now_(now) {}

  void add(const Answer& answer) noexcept {
    const auto& outcome = *answer.outcome;
    if (!outcome.allowed) return hear_refusal(answer);
    if (outcome.delay > (slowest_.outcome ? slowest_.outcome->delay : base::Duration{0})) slowest_ = answer;
    if (!tightest_.outcome || tighter(answer, tightest_)) tightest_ = answer;
    exceeded_ = exceeded_ || outcome.remaining < answer.margin;
  }

  [[nodiscard]] Decision decision() const noexcept {
    Decision decision;
    if (refusal_.outcome) {
      decision.verdict = Verdict::Reject;
    } else if (slowest_.outcome) {
      decision.verdict = Verdict::Delay;
      decision.start_at = now_ + slowest_.outcome->delay;
      decision.delayed_by = slowest_.source->rule;
    }
    const Answer& deciding = refusal_.outcome ? refusal_ : tightest_;
    if (!deciding.outcome) return decision;
    decision.rule = deciding.source->rule;
    decision.limiter = &deciding.advertised();
    decision.outcome = *deciding.outcome;
    if (refusal_.outcome) {
      decision.outcome.retry_after = wait_;
      decision.outcome.more_after = std::min(decision.outcome.more_after, wait_);
    }
    decision.outcome.remaining = deciding.remaining();
    if (deciding.margin != 0 && deciding.outcome->allowed) decision.outcome.more_after = more_after(deciding);
    decision.exceeded = exceeded_ && !refusal_.outcome;
    return decision;
  }

 private:
  void hear_refusal(const Answer& answer) noexcept {
    const auto wait = wait_under(*answer.source->rule, answer.outcome->retry_after, now_);
    if (refusal_.outcome && wait <= wait_) return;
    refusal_ = answer;
    wait_ = wait;
  }

  base::TimePoint now_;
  Answer refusal_, slowest_, tightest_;
  base::Duration wait_{0};  // the longest wait of a refusal so far
  bool exceeded_ = false;
};

// Calls visit(bill, i) for each enforced charge.
template <class Visit>
void for_each_enforced(std::span<const Bill* const> bills, Visit visit) noexcept {
  for (const Bill* bill : bills)
    for (std::size_t i = 0; i < bill->charges().size(); ++i)
      if (bill->charges()[i].enforced) visit(*bill, i);
}

}  // namespace

base::Duration wait_under(const Rule& rule, base::Duration retry_after, base::TimePoint now) noexcept {
  if (!rule.match.hours) return retry_after;
  const auto over = rule.match.hours->end_from(now);
  return over ? std::min(retry_after, std::max(*over - now, base::Duration(0))) : retry_after;
}

Decision decide(std::span<const Bill* const> bills, base::TimePoint now) noexcept {
  DecisiveOutcomes decisive(now);
  for_each_enforced(bills, [&](const Bill& bill, std::size_t i) {
    decisive.add(answer_of(bill.source(i), bill.outcomes()[i]));
  });
  return decisive.decision();
}

Decision decide_for_descriptor(std::span<const Bill* const> bills, base::TimePoint now,
                               std::size_t descriptor) noexcept {
  const auto bit = std::uint32_t{1} << descriptor;
  bool refused = false;
  for_each_enforced(
      bills, [&](const Bill& bill, std::size_t i) { refused = refused || !bill.outcomes()[i].allowed; });
  DecisiveOutcomes decisive(now);
  for_each_enforced(bills, [&](const Bill& bill, std::size_t i) {
    const auto& source = bill.source(i);
    if (source.descriptors != 0 && (source.descriptors & bit) == 0) return;
    const auto& outcome = bill.outcomes()[i];
    auto answer = answer_of(source, outcome);
    if (refused && outcome.allowed) answer.uncharged = bill.charges()[i].cost;
    decisive.add(answer);
  });
  return decisive.decision();
}

ChargeRef longest_delay(std::span<const Bill* const> bills) noexcept {
  ChargeRef slowest;
  base::Duration longest{-1};
  for (const Bill* bill : bills)
    for (std::size_t i = 0; i < bill->charges().size(); ++i) {
      if (!bill->charges()[i].enforced || bill->outcomes()[i].delay <= longest) continue;
      longest = bill->outcomes()[i].delay;
      slowest = {bill, i};
    }
  return slowest;
}

}  // namespace weir::policy
