#include "weir/redis/store.hpp"

#include "redis/session.hpp"

#include <array>
#include <cassert>
#include <utility>

namespace weir::redis {

Store::Store(net::Executor executor, const RedisSettings& settings, StoreLog log, const StoreTuning& tuning,
             LastRefunds* refunds, UnitLeases* units)
    : session_(std::make_shared<Session>(executor, settings, std::move(log), tuning, refunds, units)) {}

Store::~Store() {
  session_->stop();
}

void Store::start() {
  session_->start();
}
void Store::stop() {
  session_->stop();
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
  return has_leases(charges) ? refuses_rest(charges, outcomes) : session_->refuses(charges, outcomes);
}

void Store::refund(const limit::Charge& charge, base::TimePoint departure) {
  const Refund line{charge, departure};
  session_->refund({&line, 1});
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
      lines[n++] = {charges[i], charged_at + outcomes[i].delay};
  }
  if (n > 0) session_->refund({lines.data(), n});
}

void Store::settle(const limit::Charge& charge, base::TimePoint charged_at, limit::Cost actual) {
  if (actual == charge.cost) return;
  const Refund line{charge, charged_at, actual};
  session_->refund({&line, 1});
}

void Store::release(const limit::Charge& charge) {
  session_->release(charge);
}
void Store::hold(const limit::Charge& charge) {
  session_->hold(charge);
}

bool Store::is_taking() const noexcept {
  return session_->is_taking();
}

StoreState Store::state() const noexcept {
  return session_->state();
}
const StoreStats& Store::stats() const noexcept {
  return session_->stats();
}
const std::string& Store::last_error() const noexcept {
  return session_->last_error();
}

}  // namespace weir::redis
