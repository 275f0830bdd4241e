// The part of AdmissionController that refunds charges, charges overdrafts, displaces a waiting request, and
// holds permits of concurrency limits in this process's key table and in Redis.
//
// Refunds are for requests that weir refuses after all, that reached no server, or whose departure went to
// another request. Displacement is for a full queue. A new request takes the place of the last waiting
// request if the new request has a better priority, or if its client has fewer waiting requests.
#include "proxy/admission/admission_controller.hpp"

#include "weir/policy/priority.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <variant>

namespace weir::proxy {

namespace {

// Returns the position in `bill` of the charge that has a queue, if only the full queue refused the request.
// Returns nullopt if another limit also refused the request, if the request can never fit into the queue, or
// if its client has a penalty. Also returns nullopt for a check, which takes no place in the queue.
std::optional<std::size_t> full_queue(const policy::Bill& bill) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < bill.charges().size(); ++i) {
    const auto& charge = bill.charges()[i];
    const auto& outcome = bill.outcomes()[i];
    if (outcome.allowed || !charge.enforced) continue;
    const bool queue = std::holds_alternative<limit::LeakyBucket>(*charge.limiter) && charge.cost != 0;
    const bool may_fit = outcome.retry_after != base::kForever && outcome.penalty_left.count() == 0;
    if (found || !queue || !may_fit) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace

void AdmissionController::refund() {
  if (!taken_) return refund_except(queue_lane_ ? &*queue_lane_ : nullptr);
  const auto taken = *std::exchange(taken_, std::nullopt);
  refund_except(&taken.charge.key);
  const auto& [at, promised, charge, in_redis, overflow, max_waiting] = taken;
  if (in_redis)
    worker_.redis->refund(charge, promised);
  else
    refund_here(charge, promised, worker_.clock.now(), overflow);
}

void AdmissionController::refund_after_leaving() {
  if (displacement_ && displacement_->displaced)
    keep();
  else
    refund();
}

void AdmissionController::abandon() noexcept {
  if (kept_) return;
  try {
    refund();
  } catch (...) {  // no memory for the command to Redis, so the charge in Redis remains
  }
}

// Refunds a charge in this process's key table, and notes the refund in the journal. If the charge has a
// future departure that the table does not take back, leaves the departure to other requests of its lane.
void AdmissionController::refund_here(const limit::Charge& charge, base::TimePoint departure,
                                      base::TimePoint now, bool overflow) {
  limit::HybridTimestamp timestamp = 0;
  const bool taken_back = worker_.table.refund(charge, departure, now, overflow, &timestamp);
  auto refunded = amendment_of(charge, now, timestamp);
  std::uint64_t max_waiting = 0;
  // Finds this request's charge by its key. `charge` itself may belong to another request, whose departure
  // this request took, and to an earlier ConfigSnapshot.
  for (const auto* bill : bills_)
    for (std::size_t i = 0; i < bill->charges().size(); ++i) {
      const auto& own = bill->charges()[i];
      if (own.key != charge.key) continue;
      refunded.rule = own.rule;
      max_waiting = shared_max_waiting(*bill->source(i).rule, charge);
    }
  refunded.departure = departure;
  buffers_.journal.note(refunded);
  if (!std::holds_alternative<limit::LeakyBucket>(*charge.limiter)) return;
  if (taken_back)
    worker_.shaper.return_surplus(charge.key);
  else if (departure > now)
    leave_to_lane({departure, departure, charge, false, overflow, max_waiting});
}

// Offers a departure to the other requests of its lane, because the key table did not take it back. The table
// takes back only the latest departure that it has promised. If no request needs the departure, it stays in
// the lane as surplus. When the table takes back the lane's last departure, Shaper::return_surplus() returns
// the surplus, too.
void AdmissionController::leave_to_lane(const Departure& departure) {
  try {
    worker_.shaper.pass_on(departure);
  } catch (const std::bad_alloc&) {  // no memory, so the departure stays unused
  }
}

// Refunds all charges except permits. `lane`: the key of a charge that is not refunded, either; null: none.
// Keeps the permits until the exchange ends, because adaptive limiters also learn from an upstream that was
// not reached.
void AdmissionController::refund_except(const limit::Key* lane) {
  if (!local_charged_ && !fallback_charged_ && !remote_charged_) return settlements_.cancel();
  const auto give_back = [&](const policy::Bill& bill, base::TimePoint since, const auto& refund) {
    const auto outcomes = bill.outcomes();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const auto& charge = bill.charges()[i];
      const bool elsewhere = lane == nullptr || charge.key != *lane;
      if (outcomes[i].allowed && charge.cost != 0 && elsewhere && !limit::holds(*charge.limiter))
        refund(charge, since + base::Duration(outcomes[i].ahead) + outcomes[i].delay, outcomes[i]);
    }
  };
  const auto now = worker_.clock.now();
  const auto here = [&](const limit::Charge& charge, base::TimePoint departure,
                        const limit::Outcome& outcome) {
    if (displacement_ && displacement_->departure.charge.key == charge.key)
      worker_.shaper.pass_on(
          displacement_->departure);  // another request in the lane can take this departure
    else
      refund_here(charge, departure, now, outcome.overflow);
  };
  const auto in_redis = [&](const limit::Charge& charge, base::TimePoint, const limit::Outcome& outcome) {
    worker_.redis->refund(charge, redis_now_, outcome);
    buffers_.journal.note(amendment_of(charge, now, 0));
  };
  // The charges in each store are refunded at most once. If memory runs out during a refund, the store's
  // other charges remain.
  if (std::exchange(local_charged_, false)) give_back(buffers_.evaluation.local, charged_at_, here);
  if (std::exchange(fallback_charged_, false)) give_back(buffers_.fallback, decided_at_, here);
  if (std::exchange(remote_charged_, false)) give_back(buffers_.evaluation.remote, redis_now_, in_redis);
  settlements_.cancel();
}

// Charges the overdrafts of a question that is decided, whatever the decision is. If a local limit has
// refused the question, Redis was not asked, and weir estimates Redis's time.
void AdmissionController::overdraw() {
  using Store = Settlements::Store;
  auto& remote = buffers_.evaluation.remote;
  settlements_.overdraw(buffers_.evaluation.local, Store::Table, charged_at_, decided_at_);
  overdraw_fallback();
  if (remote.empty() || !config_.names_agreed) return;
  const bool was_asked = local_charged_ || refused_without_redis_;
  const auto redis_time = was_asked ? redis_now_ : worker_.redis->server_time(remote.charges().front().key);
  settlements_.overdraw(remote, Store::Redis, redis_time, decided_at_);
}

// Charges overdrafts of the fallback in the key table. Does nothing if overdraw_late() has already sent these
// overdrafts to Redis.
void AdmissionController::overdraw_fallback() {
  if (overdrawn_late_) return;
  settlements_.overdraw(buffers_.fallback, Settlements::Store::Table, decided_at_, decided_at_);
}

// Charges the overdrafts of checks that Redis has not answered in time. `unanswered`: the positions of these
// checks in the bill for Redis. Sends the overdrafts to Redis, on the connection that has sent the checks.
// Redis executes both later, so the fallback must not charge the same overdrafts again.
void AdmissionController::overdraw_late(limit::ChargeSet unanswered) {
  overdrawn_late_ = true;
  auto& remote = buffers_.evaluation.remote;
  const auto redis_time = worker_.redis->server_time(remote.charges().front().key);
  settlements_.overdraw(remote, Settlements::Store::Redis, redis_time, decided_at_, unanswered);
}

// Charges the local limits. If a queue is full, may displace a waiting request. Returns false if the request
// is refused.
bool AdmissionController::charge_or_displace(base::TimePoint now, policy::Priority priority) {
  auto& bill = buffers_.evaluation.local;
  const bool may_displace = worker_.shaper.may_displace(priority) && buffers_.evaluation.remote.empty();
  const auto violations = may_displace ? limit::Violations::ButFullQueues : limit::Violations::All;
  if (worker_.table.charge(bill.charges(), now, bill.outcomes(), &buffers_.journal.charged, violations))
    return true;
  if (!may_displace) return false;
  if (displace(now, priority)) return true;
  for (std::size_t i = 0; i < bill.charges().size(); ++i) {
    const auto& charge = bill.charges()[i];
    if (charge.enforced && std::holds_alternative<limit::LeakyBucket>(*charge.limiter))
      note_refusal(charge, now, bill.outcomes()[i]);
  }
  return false;
}

// Records the refusal of the charge as a violation if its rule has a penalty. A refused check is no
// violation.
void AdmissionController::note_refusal(const limit::Charge& charge, base::TimePoint now,
                                       limit::Outcome& outcome) {
  if (charge.penalty != nullptr && !outcome.allowed && charge.cost != 0)
    worker_.table.violate(charge, now, outcome);
}

// Takes a departure of the full queue for this request, and charges the other limits. If the queue has no
// surplus departure, evicts a waiting request. Returns false and changes nothing if another limit also
// refuses the request, or if the queue has no departure for it (Queue::has_departure_for()).
//
// REQUIRES: this priority may displace a request, and no rule needs Redis. Otherwise this function could
// evict a waiting request, and Redis could then refuse the new request.
bool AdmissionController::displace(base::TimePoint now, policy::Priority priority) {
  auto& bill = buffers_.evaluation.local;
  const auto queued = full_queue(bill);
  if (!queued) return false;
  const auto& charge = bill.charges()[*queued];
  auto& outcome = bill.outcomes()[*queued];
  const Newcomer newcomer{.lane = charge.key,
                          .client = policy::name_client(buffers_.request, config_.names.table),
                          .priority = priority,
                          .cost = charge.cost,
                          .most = bill.source(*queued).rule->queue_per_client};
  displacement_ = worker_.shaper.displace(
      newcomer, [this, now, skipped = *queued] { return charge_except(skipped, now); });
  if (!displacement_) return false;
  outcome.allowed = true;
  outcome.retry_after = base::Duration(0);
  outcome.overflow = displacement_->departure.overflow;
  // The delay is at least 1 µs. So the request joins the lane (the queue of one key) even if its departure is
  // due, and tickets that are due earlier depart first.
  outcome.delay = std::max(displacement_->departure.at - now, base::Duration(1));
  return true;
}

// Charges all limits except the one at position `index` of the bill, or charges none of them. Returns true if
// they were charged; otherwise leaves the outcomes unchanged. Must not allocate, because the queue's mutex is
// held.
//
// charge_or_displace() has already tried to charge the same bill. This first attempt has recorded the
// violations of shadow rules in the outcomes. If a shadow rule also refuses now, its outcome of the first
// attempt remains.
bool AdmissionController::charge_except(std::size_t index, base::TimePoint now) {
  auto& bill = buffers_.evaluation.local;
  boost::container::static_vector<limit::Charge, limit::kMaxCharges> charges(bill.charges().begin(),
                                                                             bill.charges().end());
  charges.erase(charges.begin() + static_cast<std::ptrdiff_t>(index));
  std::array<limit::Outcome, limit::kMaxCharges> room;
  const std::span outcomes(room.data(), charges.size());
  if (!charges.empty() &&
      !worker_.table.charge(charges, now, outcomes, &buffers_.journal.charged, limit::Violations::None))
    return false;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    auto& outcome = bill.outcomes()[i < index ? i : i + 1];
    if (outcome.allowed || outcomes[i].allowed) outcome = outcomes[i];
  }
  return true;
}

// Takes a permit for each charge in `bill` that limits concurrency. A request that waits for its departure
// counts as concurrent. REQUIRES that room for the permits was reserved before the charge: a charge without a
// permit would never be released.
void AdmissionController::hold(const policy::Bill& bill) {
  const auto outcomes = bill.outcomes();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto& charge = bill.charges()[i];
    if (outcomes[i].allowed && charge.cost != 0 && limit::holds(*charge.limiter))
      buffers_.permits.emplace_back(worker_.table, charge, since(&bill), outcomes[i].overflow);
  }
}

// Reserves room for the objects that release the permits in Redis. Must be called before Redis is charged:
// the charge makes the store renew the permits until they are released. If memory for an object ran out after
// the charge, the store would renew the permit until weir stops.
void AdmissionController::make_room_for_permits(const policy::Bill& bill) {
  const auto charges = bill.charges();
  const auto held = std::count_if(charges.begin(), charges.end(),
                                  [](const auto& charge) { return limit::holds(*charge.limiter); });
  buffers_.shared_permits.reserve(buffers_.shared_permits.size() + static_cast<std::size_t>(held));
}

void AdmissionController::hold_in_redis(const policy::Bill& bill) {
  const auto outcomes = bill.outcomes();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto& charge = bill.charges()[i];
    if (outcomes[i].allowed && charge.cost != 0 && limit::holds(*charge.limiter))
      buffers_.shared_permits.emplace_back(*worker_.redis, charge);
  }
}

// Takes permits for the charges that Redis did not answer (`unanswered`), because the request proceeds
// without Redis's answer.
void AdmissionController::hold_unanswered(limit::ChargeSet unanswered) {
  // Without the common secret key, other weirs give the keys other names, and would not count the permits.
  if (!config_.names_agreed) return;
  const auto charges = buffers_.evaluation.remote.charges();
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const auto& charge = charges[i];
    if ((unanswered >> i & 1U) == 0 || charge.cost == 0 || !limit::holds(*charge.limiter)) continue;
    worker_.redis->hold(charge);
    buffers_.shared_permits.emplace_back(*worker_.redis, charge);
  }
}

bool AdmissionController::holds_until_answered() const {
  if (!holds()) return false;
  for (const auto* bill : decisive_bills())
    for (std::size_t i = 0; i < bill->charges().size(); ++i)
      if (bill->source(i).rule->hold == policy::Hold::Answer && limit::holds(*bill->charges()[i].limiter))
        return true;
  return false;
}

void AdmissionController::forget_charges() {
  buffers_.permits.clear();
  buffers_.shared_permits.clear();
}

void AdmissionController::end(base::TimePoint now, const limit::Ending& ending) {
  for (auto& permit : buffers_.permits) {
    limit::HybridTimestamp timestamp = 0;
    permit.release(now, ending, &timestamp);
    auto released = amendment_of(permit.charge(), now, timestamp);
    released.kind = observe::Amendment::Kind::Release;
    released.ending = ending;
    buffers_.journal.note(released);
  }
  buffers_.permits.clear();
}

}  // namespace weir::proxy
