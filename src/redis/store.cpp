#include "weir/redis/store.hpp"

#include "redis/cluster.hpp"
#include "redis/session.hpp"

#include <array>
#include <cassert>
#include <utility>

namespace weir::redis {

Store::Store(net::Executor executor, const RedisSettings& settings, StoreLog log, const StoreTuning& tuning,
             LastRefunds* refunds, UnitLeases* units) {
  if (settings.topology == Topology::Cluster)
    cluster_ = std::make_shared<Cluster>(executor, settings, std::move(log), tuning, refunds);
  else
    session_ = std::make_shared<Session>(executor, settings, std::move(log), tuning, refunds, units);
}

Store::~Store() {
  stop();
}

void Store::start() {
  if (cluster_) return cluster_->start();
  session_->start();
}
void Store::stop() {
  if (cluster_) return cluster_->stop();
  session_->stop();
}

net::Task<net::ErrorCode> Store::charge(std::span<const limit::Charge> charges,
                                        std::span<limit::Outcome> outcomes, base::TimePoint& server_now,
                                        limit::LineSet& unasked) {
  assert(!charges.empty() && charges.size() == outcomes.size() && charges.size() <= limit::kMaxCharges);
  unasked = limit::all_lines(charges.size());
  if (cluster_) return cluster_->charge(charges, outcomes, server_now, unasked);
  return charge(charges, outcomes, server_now);
}

net::Task<net::ErrorCode> Store::charge(std::span<const limit::Charge> charges,
                                        std::span<limit::Outcome> outcomes, base::TimePoint& server_now) {
  assert(!charges.empty() && charges.size() == outcomes.size() && charges.size() <= limit::kMaxCharges);
  if (has_leases(charges)) return charge_leased(session_, charges, outcomes, server_now);
  return charge_there(charges, outcomes, server_now);
}

net::Task<net::ErrorCode> Store::charge_there(Charges charges, Outcomes outcomes,
                                              base::TimePoint& server_now) {
  Call call{charges, outcomes};
  const auto refused = session_->begin(call);
  if (refused) co_return refused;
  co_await Park{call};
  // From here on the store itself may be gone: only the call is touched.
  if (!call.error) server_now = call.server_now;
  co_return call.error;
}

bool Store::refuses(std::span<const limit::Charge> charges, std::span<limit::Outcome> outcomes) noexcept {
  if (cluster_) return cluster_->refuses(charges, outcomes);
  return has_leases(charges) ? refuses_rest(charges, outcomes) : session_->refuses(charges, outcomes);
}

void Store::tell(std::span<const Refund> lines) {
  if (cluster_) return cluster_->refund(lines);
  session_->refund(lines);
}

void Store::refund(const limit::Charge& charge, base::TimePoint departure) {
  const Refund line{charge, departure};
  tell({&line, 1});
}

void Store::refund(std::span<const limit::Charge> charges, base::TimePoint charged_at,
                   std::span<const limit::Outcome> outcomes) {
  assert(charges.size() == outcomes.size() && charges.size() <= limit::kMaxCharges);
  std::array<Refund, limit::kMaxCharges> lines;
  std::size_t n = 0;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (!outcomes[i].allowed || limit::holds(*charges[i].limiter)) continue;
    if (charges[i].lease != 0)
      refund(charges[i], charged_at, outcomes[i]);
    else
      lines[n++] = {charges[i], charged_at + base::Duration(outcomes[i].ahead) + outcomes[i].delay};
  }
  if (n > 0) tell({lines.data(), n});
}

void Store::settle(const limit::Charge& charge, base::TimePoint charged_at, limit::Cost actual) {
  if (actual == charge.cost) return;
  const Refund line{charge, charged_at, actual};
  tell({&line, 1});
}

void Store::release(const limit::Charge& charge) {
  if (cluster_) return cluster_->release(charge);
  session_->release(charge);
}
void Store::hold(const limit::Charge& charge) {
  if (cluster_) return cluster_->hold(charge);
  session_->hold(charge);
}

bool Store::is_taking() const noexcept {
  return session_ && session_->is_taking();
}

StoreState Store::state() const noexcept {
  return cluster_ ? cluster_->state() : session_->state();
}
const StoreStats& Store::stats() const noexcept {
  return cluster_ ? cluster_->stats() : session_->stats();
}
const std::string& Store::last_error() const noexcept {
  return cluster_ ? cluster_->last_error() : session_->last_error();
}

}  // namespace weir::redis
