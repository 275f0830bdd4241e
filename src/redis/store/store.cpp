#include "weir/redis/store.hpp"

#include "redis/cluster/cluster.hpp"
#include "redis/connection/session.hpp"
#include "redis/prefetch/prefetching_store.hpp"

#include <cassert>
#include <utility>

namespace weir::redis {

Store::Store(net::Executor executor, const RedisSettings& settings, StoreLog log, const StoreTuning& tuning,
             LastRefunds* refunds, SharedGrants* units)
    : finish_timeout_(tuning.finish_timeout) {
  if (settings.topology == Topology::Cluster)
    backend_ = std::make_shared<Cluster>(executor, settings, std::move(log), tuning, refunds);
  else
    backend_ = std::make_shared<Session>(executor, settings, std::move(log), tuning, refunds);
  if (units == nullptr) return;
  prefetching_ = std::make_shared<PrefetchingStore>(executor, backend_, *units);
}

Store::~Store() {
  stop();
}

void Store::start() {
  backend_->start();
  if (prefetching_) prefetching_->start();
}
bool Store::finish() {
  const auto now = std::chrono::steady_clock::now();
  if (!finish_by_) finish_by_ = now + finish_timeout_;
  const bool returned = !prefetching_ || prefetching_->finish();
  return (returned && backend_->is_quiet()) || now >= *finish_by_;
}
void Store::stop() {
  if (prefetching_) prefetching_->stop();
  backend_->stop();
}

bool Store::spends_prefetched(Charges charges) const noexcept {
  return prefetching_ && PrefetchingStore::may_prefetch(charges);
}

net::Task<net::ErrorCode> Store::charge(std::span<const limit::Charge> charges,
                                        std::span<limit::Outcome> outcomes, base::TimePoint& server_now,
                                        limit::ChargeSet& unanswered) {
  assert(!charges.empty() && charges.size() == outcomes.size() && charges.size() <= limit::kMaxCharges);
  unanswered = limit::all_charges(charges.size());
  if (spends_prefetched(charges)) return prefetching_->charge(charges, outcomes, server_now, unanswered);
  return backend_->charge(charges, outcomes, server_now, unanswered);
}

std::optional<base::TimePoint> Store::refuses(std::span<const limit::Charge> charges,
                                              std::span<limit::Outcome> outcomes) noexcept {
  return spends_prefetched(charges) ? prefetching_->refuses(charges, outcomes)
                                    : backend_->refuses(charges, outcomes);
}

void Store::refund(const limit::Charge& charge, base::TimePoint departure) {
  const Refund line{charge, departure};
  backend_->refund({&line, 1});
}

void Store::refund(const limit::Charge& charge, base::TimePoint charged_at, const limit::Outcome& outcome) {
  if (prefetching_ && outcome.prefetched) return prefetching_->refund(charge, outcome);
  const Refund line = refund_of(charge, charged_at + base::Duration(outcome.ahead), outcome);
  backend_->refund({&line, 1});
}

void Store::settle(const limit::Charge& charge, base::TimePoint charged_at, limit::Cost actual) {
  if (actual == charge.cost) return;
  const Refund line{charge, charged_at, actual};
  backend_->refund({&line, 1});
}

void Store::release(const limit::Charge& charge) {
  backend_->release(charge);
}
void Store::hold(const limit::Charge& charge) {
  backend_->hold(charge);
}

base::TimePoint Store::server_time(const limit::Key& key) const noexcept {
  return backend_->server_time(key, std::chrono::steady_clock::now());
}
StoreState Store::state() const noexcept {
  return backend_->state();
}
const StoreStats& Store::stats() const noexcept {
  return backend_->stats();
}
const std::string& Store::last_error() const noexcept {
  return backend_->last_error();
}
std::string Store::why_down() const {
  return backend_->why_down();
}

}  // namespace weir::redis
