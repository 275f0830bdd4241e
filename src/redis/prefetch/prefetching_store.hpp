// Pays charges of one worker's bills with units that were prefetched from Redis. If the units for a charge
// are not enough, Redis decides the charge. If Redis refuses the bill, the units are put back.
//
// Belongs to the store's worker. All workers share the units (redis::SharedGrants).
#pragma once

#include "redis/connection/backend.hpp"

#include "weir/net/asio.hpp"
#include "weir/redis/shared_grants.hpp"
#include "weir/redis/store.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <span>

namespace weir::redis {

class Store::PrefetchingStore final : public std::enable_shared_from_this<Store::PrefetchingStore> {
 public:
  // `units` must outlive the executor's event loop.
  PrefetchingStore(net::Executor executor, std::shared_ptr<Backend> backend, SharedGrants& units);

  void start();
  // Stops prefetching units. The last worker to call finish() refunds the units of all workers, as fast as
  // Redis answers. Returns true if this worker has nothing more to refund: another worker still uses the
  // units, no units are left, or Redis is unavailable. Otherwise finish() must be called again.
  [[nodiscard]] bool finish();
  // Does what finish() does, but sends all refunds at once and does not wait for replies. Must be called
  // before the backend stops.
  void stop();

  // Returns true if the rule of any of the charges prefetches units (has a `lease`).
  [[nodiscard]] static bool may_prefetch(Charges charges) noexcept;

  // Charges a bill as Store::charge does. `unanswered` never contains charges that were paid with prefetched
  // units. If memory runs out, those units are put back.
  [[nodiscard]] net::Task<net::ErrorCode> charge(Charges charges, Outcomes outcomes,
                                                 base::TimePoint& server_now, limit::ChargeSet& unanswered);
  // Refuses a bill as Store::refuses() does, but only because of charges that prefetched units cannot pay.
  // All other charges count as admitted. Spends no units.
  [[nodiscard]] std::optional<base::TimePoint> refuses(Charges charges, Outcomes outcomes) noexcept;
  // Puts back prefetched units that paid for the charge. REQUIRES: outcome.prefetched.
  void refund(const limit::Charge& charge, const limit::Outcome& outcome) {
    send_refunds(units_.put_back(charge, outcome));
  }
  [[nodiscard]] bool holds_for(const limit::Charge& charge, limit::Outcome& outcome) const;
  void forget(const limit::Charge& charge) { units_.forget(charge); }

 private:
  void put_back(Charges charges, std::span<const limit::Outcome> outcomes) noexcept;
  void prefetch(Charges charges, Pipeline::Time now) noexcept;
  static net::Task<void> take(std::shared_ptr<PrefetchingStore> self, limit::Charge lease);
  void send_refunds(std::span<const Refund> units);
  void sweep_later();
  [[nodiscard]] bool leave() noexcept;

  net::Executor executor_;
  const std::shared_ptr<Backend> backend_;
  SharedGrants& units_;
  net::Timer timer_;
  unsigned pending_prefetches_ = 0;  // number of calls for more units that still wait for a reply
  bool ends_ = false;                // true: finish() or stop() was called, so no more units are taken
  bool stopped_ = false;
  // True: this worker was the last one to use the shared units. Set when this worker stops using them.
  std::optional<bool> is_last_;
};

}  // namespace weir::redis
