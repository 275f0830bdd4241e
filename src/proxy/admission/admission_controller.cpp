#include "proxy/admission/admission_controller.hpp"

#include "weir/observe/counters.hpp"

#include <algorithm>

namespace weir::proxy {

namespace {

using observe::RuleOutcome;

RuleOutcome outcome_of(const limit::Charge& charge, const limit::Outcome& outcome) noexcept {
  if (!outcome.allowed) return charge.enforced ? RuleOutcome::Refused : RuleOutcome::ShadowRefused;
  if (outcome.overflow) return RuleOutcome::Overflow;
  return outcome.delay.count() > 0 ? RuleOutcome::Delayed : RuleOutcome::Admitted;
}

}  // namespace

// Counts the outcome of each rule for the metrics. For a refused request, counts only the rules that refused
// it, because the other rules charged nothing.
void AdmissionController::count(const policy::Bill& bill, bool admitted) {
  const auto outcomes = bill.outcomes();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (bill.source(i).applied.counted) continue;
    const auto& charge = bill.charges()[i];
    if (outcomes[i].penalty_begins) worker_.counters.penalties(bill.source(i).rule->index).add();
    if (admitted || !outcomes[i].allowed)
      worker_.counters.decisions(bill.source(i).rule->index, outcome_of(charge, outcomes[i])).add();
  }
}

// Counts the request for its client, once for each rule that decided about the request. If the request was
// admitted, these are all rules; if it was refused, only the refusing rules. Omits an admitted charge of cost
// 0 (a check), because it uses no units. Counts an overdraft even if the question is refused, because an
// overdraft uses units.
void AdmissionController::count_clients(observe::TopClients& top, bool admitted) {
  observe::TopClients::Writer writing(top, charged_at_);
  for (const auto* bill : decisive_bills())
    for (std::size_t i = 0; i < bill->charges().size(); ++i) {
      const auto& source = bill->source(i);
      auto charge = bill->charges()[i];
      charge.cost += source.overdraft;
      const bool allowed = bill->outcomes()[i].allowed || source.overdraft != 0;
      const bool used = (admitted || source.overdraft != 0) && charge.cost != 0;
      if (source.applied.counted || (allowed && !used)) continue;
      charge.cost = limit::units_to_fit(charge);
      charge.key = reported_key(*bill, i);
      const policy::RequestOfCharge seen(buffers_.request, source.descriptors);
      writing.add(*source.rule, charge, allowed, *seen);
    }
}

// For each rule that refuses the request, counts a refusal of the client if an alert watches the clients of
// the rule.
void AdmissionController::count_refused_clients(observe::RefusedClients& refused) {
  for (const auto* bill : decisive_bills())
    for (std::size_t i = 0; i < bill->charges().size(); ++i) {
      const auto& source = bill->source(i);
      if (source.applied.counted || bill->outcomes()[i].allowed) continue;
      const policy::RequestOfCharge seen(buffers_.request, source.descriptors);
      refused.add(*source.rule, reported_key(*bill, i), *seen);
    }
}

void AdmissionController::settle_later(policy::Bill& bill, Settlements::Store store,
                                       base::TimePoint charged_at) {
  if ((config_.settles || settles_any_) && !bill.empty()) settlements_.begin(bill, store, charged_at);
}

// Returns the bills (lists of charges) that were charged or looked up. If a local limit refused the request,
// omits the bill for Redis, because weir has not asked Redis.
std::span<const policy::Bill* const> AdmissionController::decisive_bills() const {
  return std::span(bills_).first(local_charged_ || refused_without_redis_ ? bills_.size() : 1);
}

AdmissionResult AdmissionController::conclude() {
  if (!buffers_.request.descriptors.empty()) overdraw();
  const auto decision = policy::decide(decisive_bills(), decided_at_);
  decisive_count_ = decisive_bills().size();
  for (const auto* bill : decisive_bills()) count(*bill, decision.verdict != policy::Verdict::Reject);
  try {
    if (auto* top = worker_.counters.top.get())
      count_clients(*top, decision.verdict != policy::Verdict::Reject);
    if (auto& refused = *worker_.counters.refused_clients; refused.is_on()) count_refused_clients(refused);
  } catch (const std::bad_alloc&) {  // no memory to count the client
  }
  if (decision.verdict == policy::Verdict::Reject) forget_charges();
  return {.decision = decision};
}

AdmissionController::Delayed AdmissionController::delayed() const {
  const auto slowest = policy::longest_delay(decisive_bills());
  const auto& charge = slowest.bill->charges()[slowest.index];
  const auto& outcome = slowest.bill->outcomes()[slowest.index];
  const bool in_redis = slowest.bill == &buffers_.evaluation.remote;
  Delayed delayed{.charge = charge, .rule = slowest.bill->source(slowest.index).rule};
  const auto here = since(slowest.bill);
  delayed.departure = {
      .at = here + outcome.delay,
      .promised = (in_redis ? redis_now_ + base::Duration(outcome.ahead) : here) + outcome.delay,
      .charge = charge,
      .in_redis = in_redis,
      .overflow = outcome.overflow,
      .shared_max_waiting = shared_max_waiting(*delayed.rule, charge)};
  for (const auto* bill : decisive_bills())
    for (std::size_t i = 0; i < bill->charges().size(); ++i) {
      const auto delay = bill->outcomes()[i].delay;
      if (bill->charges()[i].enforced && delay.count() > 0 && slowest != policy::ChargeRef{bill, i})
        delayed.not_before = std::max(delayed.not_before, since(bill) + delay);
    }
  if (displacement_ && displacement_->departure.charge.key == delayed.charge.key)
    delayed.departure = displacement_->departure;
  return delayed;
}

// Returns the key of a charge as logs show it. For a charge that this process made in place of Redis (the
// fallback), returns the client's key in Redis. So the logged key does not change while Redis is unavailable.
limit::Key AdmissionController::reported_key(const policy::Bill& bill, std::size_t index) const {
  const auto& key = bill.charges()[index].key;
  if (&bill != &buffers_.fallback) return key;
  const auto& [rule, applied, descriptors, overdraft] = bill.source(index);
  const policy::RequestOfCharge seen(buffers_.request, descriptors);
  return policy::name_in_redis(*rule, applied, *seen, config_.names).value_or(key);
}

std::optional<limit::Key> AdmissionController::key_in(const policy::Rule* rule) const {
  if (rule == nullptr) return std::nullopt;
  const auto [bill, index] = policy::charge_of(bills_, *rule);
  return bill != nullptr ? std::optional(reported_key(*bill, index)) : std::nullopt;
}

boost::container::static_vector<observe::AppliedRule, AdmissionController::kMostAsked>
AdmissionController::applied_rules() const {
  boost::container::static_vector<observe::AppliedRule, kMostAsked> all_rules;
  for (const auto* bill : std::span(bills_).first(decisive_count_))
    for (std::size_t i = 0; i < bill->charges().size() && all_rules.size() < all_rules.capacity(); ++i) {
      const auto& [rule, applied, descriptors, overdraft] = bill->source(i);
      if (applied.counted) continue;
      const auto& charge = bill->charges()[i];
      const bool won = displacement_ && displacement_->departure.charge.key == charge.key;
      const auto outcome = outcome_of(charge, bill->outcomes()[i]);
      all_rules.push_back(
          {.rule = rule,
           .key = charge.key,
           .cost = charge.cost,
           .outcome = won ? "won" : observe::kRuleOutcomeNames[static_cast<std::size_t>(outcome)],
           .variant = applied.variant,
           .elastic = applied.elastic,
           .factor = applied.factor});
    }
  return all_rules;
}

base::TimePoint AdmissionController::reset_at(const policy::Decision& decision) const noexcept {
  const auto& outcome = decision.outcome;
  const auto step = worker_.clock_step != nullptr ? worker_.clock_step->seconds() : std::chrono::seconds{0};
  const auto speaks_in = [&](const policy::Bill& bill) {
    for (std::size_t i = 0; i < bill.charges().size(); ++i)
      if (bill.source(i).rule == decision.rule) return true;
    return false;
  };
  if (speaks_in(buffers_.evaluation.remote))
    return redis_now_ + base::Duration(outcome.ahead) + outcome.reset_after;
  return (speaks_in(buffers_.fallback) ? decided_at_ : charged_at_) + step + outcome.reset_after;
}

bool AdmissionController::decide_here(base::TimePoint now, policy::Priority priority,
                                      AdmissionResult& admission_result) {
  auto& evaluation = buffers_.evaluation;
  charged_at_ = decided_at_ = now;
  admission_result.rejection = evaluation.collect(buffers_.rules, buffers_.request, config_.names);
  if (admission_result.rejection) return true;
  if (refused_without_redis(now)) {
    admission_result = conclude();
    return true;
  }
  buffers_.permits.reserve(evaluation.local.charges().size());
  local_charged_ = evaluation.local.empty() || charge_or_displace(now, priority);
  if (local_charged_) hold(evaluation.local);
  if (local_charged_) settle_later(evaluation.local, Settlements::Store::Table, now);
  if (local_charged_ && !evaluation.remote.empty()) return false;
  admission_result = conclude();
  return true;
}

// Returns true if this process knows from an earlier answer of Redis (DenyCache) that Redis would refuse the
// request. In that case nothing is charged. The local limits are looked up, because Retry-After must state
// the longest wait of all refusals.
bool AdmissionController::refused_without_redis(base::TimePoint now) {
  auto& local = buffers_.evaluation.local;
  auto& remote = buffers_.evaluation.remote;
  const auto charges = remote.charges();
  if (charges.empty()) return false;
  // If a rule has a settlement, a correction of an earlier charge may have freed units since Redis answered.
  // So such a rule refuses with certainty only if the client has a penalty, which no correction ends.
  const auto is_settled = [&](std::size_t i) { return remote.source(i).rule->settlement.has_value(); };
  for (std::size_t i = 0; i < charges.size(); ++i)
    if (is_settled(i) && charges[i].penalty == nullptr) return false;
  const auto there = worker_.redis->refuses(charges, remote.outcomes());
  if (!there) return false;
  for (std::size_t i = 0; i < charges.size(); ++i)
    if (is_settled(i) && remote.outcomes()[i].penalty_left.count() == 0) return false;
  refused_without_redis_ = true;
  redis_now_ = *there;
  for (std::size_t i = 0; i < charges.size(); ++i)
    if (charges[i].enforced && !remote.outcomes()[i].allowed)
      worker_.counters.denied_here(remote.source(i).rule->index).add();
  for (std::size_t i = 0; i < local.charges().size(); ++i) {
    local.outcomes()[i] = worker_.table.peek(local.charges()[i], now);
    note_refusal(local.charges()[i], now, local.outcomes()[i]);
  }
  return true;
}

bool AdmissionController::refuses_by_head(base::TimePoint now, AdmissionResult& admission_result) {
  admission_result.rejection =
      buffers_.evaluation.collect_by_head(buffers_.rules, buffers_.request, config_.names);
  return refuses_so_far(now, admission_result);
}

bool AdmissionController::refuses_unverified(base::TimePoint now, AdmissionResult& admission_result) {
  admission_result.rejection =
      buffers_.evaluation.collect_unverified(buffers_.rules, buffers_.request, config_.names);
  return refuses_so_far(now, admission_result);
}

// Refuses the request if one of the rules that were collected so far refuses it. Returns true if the request
// was refused.
bool AdmissionController::refuses_so_far(base::TimePoint now, AdmissionResult& admission_result) {
  charged_at_ = decided_at_ = now;
  if (admission_result.rejection) return true;
  if (!refused_without_redis(now) && !refused_here(now)) return false;
  admission_result = conclude();
  return true;
}

// Returns true if a local limit refuses the request. Peeks at the limits, and charges them only if one of
// them refuses. Ignores full queues, because the request may still displace a waiting request
// (transfers.cpp).
bool AdmissionController::refused_here(base::TimePoint now) {
  auto& bill = buffers_.evaluation.local;
  const auto refuses = [&](const limit::Charge& charge) {
    return charge.enforced && !std::holds_alternative<limit::LeakyBucket>(*charge.limiter) &&
           !worker_.table.peek(charge, now).allowed;
  };
  if (std::none_of(bill.charges().begin(), bill.charges().end(), refuses)) return false;
  buffers_.permits.reserve(bill.charges().size());
  local_charged_ = worker_.table.charge(bill.charges(), now, bill.outcomes(), &buffers_.journal.charged);
  if (!local_charged_) return true;
  // A limit refused the peek but admitted the charge, because units became free in between. Refunds all
  // charges, because this function must charge nothing if it returns false.
  hold(bill);
  refund();
  forget_charges();
  buffers_.journal.clear();
  return false;
}

net::Task<AdmissionResult> AdmissionController::ask_redis() {
  auto& remote = buffers_.evaluation.remote;
  make_room_for_permits(remote);
  auto unanswered = limit::all_charges(remote.charges().size());
  net::ErrorCode ec = redis::StoreError::Away;
  if (config_.names_agreed)
    ec = co_await worker_.redis->charge(remote.charges(), remote.outcomes(), redis_now_, unanswered);
  decided_at_ = worker_.clock.now();
  if (ec) {
    worker_.counters.store_failures.add();
    for (std::size_t i = 0; i < remote.charges().size(); ++i)
      if ((unanswered >> i & 1U) != 0)
        worker_.counters.decisions(remote.source(i).rule->index, RuleOutcome::StoreFailed).add();
    if (ec == redis::StoreError::Timeout) overdraw_late(unanswered);
    co_return fall_back(unanswered);
  }
  keep_remote({});
  auto admission_result = conclude();
  if (admission_result.decision.verdict == policy::Verdict::Reject) refund();
  co_return admission_result;
}

// Records which charges Redis made. `unanswered`: the positions of the charges without an answer. Redis makes
// no charge at all if it refuses an enforced charge. The steps that need memory come last. If memory runs
// out, the charges are already recorded, so abandon() refunds them.
void AdmissionController::keep_remote(limit::ChargeSet unanswered) {
  auto& remote = buffers_.evaluation.remote;
  const auto charges = remote.charges();
  const auto outcomes = remote.outcomes();
  bool fits = unanswered != limit::all_charges(charges.size());
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if ((unanswered >> i & 1U) != 0)
      outcomes[i] = {};  // Redis charged nothing here
    else
      fits = fits && (outcomes[i].allowed || !charges[i].enforced);
  }
  if (!fits) return;
  remote_charged_ = true;
  hold_in_redis(remote);
  settle_later(remote, Settlements::Store::Redis, redis_now_);
}

// Stores each rule that limits WebSocket or gRPC messages, if Redis has not answered the charge of the rule.
// For these rules this process counts the messages, under the client's key in Redis.
void AdmissionController::remember_message_rules(limit::ChargeSet unanswered) {
  const auto& remote = buffers_.evaluation.remote;
  for (std::size_t i = 0; i < remote.charges().size(); ++i) {
    const auto& source = remote.source(i);
    if ((unanswered >> i & 1U) != 0 && source.rule->messages && !source.applied.counted)
      buffers_.unanswered.push_back({source.rule, remote.charges()[i]});
  }
}

// Decides about charges for which Redis gave no answer: applies the on_store_failure of each rule.
AdmissionResult AdmissionController::fall_back(limit::ChargeSet unanswered) {
  auto& remote = buffers_.evaluation.remote;
  keep_remote(unanswered);
  const auto* closed =
      buffers_.evaluation.fall_back(buffers_.request, config_.names, buffers_.fallback, unanswered);
  if (closed == nullptr) hold_unanswered(unanswered);
  remember_message_rules(unanswered);
  remote.remove(unanswered);
  if (!remote.empty() && !remote_charged_) {
    overdraw_fallback();
    buffers_.fallback.clear();
    auto refusal = conclude();
    refund();
    return refusal;
  }
  if (closed != nullptr) {
    if (!buffers_.request.descriptors.empty()) overdraw();
    forget_charges();
    refund();
    return {.closed = closed};
  }
  auto& fallback = buffers_.fallback;
  buffers_.permits.reserve(buffers_.permits.size() + fallback.charges().size());
  fallback_charged_ =
      !fallback.empty() && worker_.table.charge(fallback.charges(), decided_at_, fallback.outcomes());
  if (fallback_charged_) {
    hold(fallback);
    settle_later(fallback, Settlements::Store::Table, decided_at_);
  }
  auto admission_result = conclude();
  if (admission_result.decision.verdict == policy::Verdict::Reject) refund();
  return admission_result;
}

}  // namespace weir::proxy
