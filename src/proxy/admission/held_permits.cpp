// The part of AdmissionController that takes and releases permits of concurrency limits: in this process's
// key table, and in Redis.
#include "proxy/admission/admission_controller.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::proxy {

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

// Reserves room for the objects that hold permits. Must be called before Redis is charged. If memory ran out
// afterwards, no object would release the permit, and weir would renew it until weir stops.
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
  if (!config_.names_agreed) return;  // other weirs name the keys differently
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
    permit.give_back(now, ending, &timestamp);
    auto released = amendment_of(permit.charge(), now, timestamp);
    released.kind = observe::Amendment::Kind::Release;
    released.ending = ending;
    buffers_.journal.note(released);
  }
  buffers_.permits.clear();
}

}  // namespace weir::proxy
