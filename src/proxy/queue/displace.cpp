// Displacement in a full queue: a new request takes the place of the last waiting request if it has a better
// priority, or if its client has fewer places.
#include "proxy/admission/admission_controller.hpp"

#include "weir/policy/priority.hpp"

#include <algorithm>
#include <variant>

namespace weir::proxy {

namespace {

// Returns the position of the queue's charge if only the queue refused the request. Returns nullopt if
// another limit refused it too, or if the request can never fit into the queue.
std::optional<std::size_t> full_queue(const policy::Bill& bill) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < bill.charges().size(); ++i) {
    const auto& charge = bill.charges()[i];
    const auto& outcome = bill.outcomes()[i];
    if (outcome.allowed || !charge.enforced) continue;
    const bool queue = std::holds_alternative<limit::LeakyBucket>(*charge.limiter);
    if (found || !queue || outcome.retry_after == base::kForever) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace

// Takes the place of a waiting request. Does so only if no rule needs Redis: otherwise Redis might refuse the
// request after the other request was evicted.
bool AdmissionController::displace(base::TimePoint now, policy::Priority priority) {
  auto& bill = buffers_.evaluation.local;
  if (!worker_.shaper.may_displace(priority) || !buffers_.evaluation.remote.empty()) return false;
  const auto line = full_queue(bill);
  if (!line) return false;
  const auto& charge = bill.charges()[*line];
  auto& outcome = bill.outcomes()[*line];
  const Newcomer newcomer{.lane = charge.key,
                          .client = policy::name_client(buffers_.request, config_.names.table),
                          .priority = priority,
                          .cost = charge.cost,
                          .most = bill.line(*line).rule->queue_per_client};
  won_ = worker_.shaper.displace(newcomer, [this, now, skipped = *line] { return charge_but(skipped, now); });
  if (!won_) return false;
  outcome.allowed = true;
  outcome.retry_after = base::Duration(0);
  outcome.overflow = won_->departure.overflow;
  outcome.delay =
      std::max(won_->departure.at - now, base::Duration(1));  // other tickets of the lane may be due first
  return true;
}

// Charges all limits except that of `line`, or none of them. If none was charged, returns false and leaves
// the outcomes unchanged. Must not allocate, because the queue's mutex is held.
bool AdmissionController::charge_but(std::size_t line, base::TimePoint now) {
  auto& bill = buffers_.evaluation.local;
  boost::container::static_vector<limit::Charge, limit::kMaxCharges> charges(bill.charges().begin(),
                                                                             bill.charges().end());
  charges.erase(charges.begin() + static_cast<std::ptrdiff_t>(line));
  std::array<limit::Outcome, limit::kMaxCharges> room;
  const std::span outcomes(room.data(), charges.size());
  if (!charges.empty() && !worker_.table.charge(charges, now, outcomes, &buffers_.journal.charged))
    return false;
  for (std::size_t i = 0; i < outcomes.size(); ++i) bill.outcomes()[i < line ? i : i + 1] = outcomes[i];
  return true;
}

}  // namespace weir::proxy
