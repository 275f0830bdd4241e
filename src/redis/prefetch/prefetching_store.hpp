// One worker's payments with units held in advance. A bill's lines are paid with such units if possible;
// Redis is asked for the rest. If Redis refuses the rest, the units are put back.
//
// Belongs to the store's worker. The units belong to all workers (redis::SharedGrants).
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
  // `units` must outlive the executor's loop.
  PrefetchingStore(net::Executor executor, std::shared_ptr<Backend> backend, SharedGrants& units);

  void start();
  // Stops taking units in advance. The last of all workers gives back what all hold, as fast as Redis
  // answers. Returns true if no units are left here or Redis is away; otherwise it must be called again.
  [[nodiscard]] bool finish();
  // Does the same at once and without waiting. Must be called before the backend stops.
  void stop();

  // Returns true if a line of the bill may be paid with units held here.
  [[nodiscard]] static bool concerns(Charges charges) noexcept;

  // Like Store::charge. After an error, `unasked` does not contain the lines that were paid here. If memory
  // runs out, their units are put back.
  [[nodiscard]] net::Task<net::ErrorCode> charge(Charges charges, Outcomes outcomes,
                                                 base::TimePoint& server_now, limit::LineSet& unasked);
  // For a bill whose lines are paid here in part: only the rest decides whether it is refused.
  [[nodiscard]] std::optional<base::TimePoint> refuses(Charges charges, Outcomes outcomes) noexcept;
  // Puts back units that were spent here. REQUIRES outcome.in_advance.
  void refund(const limit::Charge& charge, const limit::Outcome& outcome) {
    give_back(units_.put_back(charge, outcome));
  }
  [[nodiscard]] bool holds_for(const limit::Charge& charge, limit::Outcome& outcome) const;
  void forget(const limit::Charge& charge) { units_.forget(charge); }

 private:
  void put_back(Charges charges, std::span<const limit::Outcome> outcomes) noexcept;
  void take_in_advance(Charges charges, Pipeline::Time now) noexcept;
  static net::Task<void> take(std::shared_ptr<PrefetchingStore> self, limit::Charge lease);
  void give_back(std::span<const Refund> units);
  void sweep_later();
  [[nodiscard]] bool leave() noexcept;

  net::Executor executor_;
  const std::shared_ptr<Backend> backend_;
  SharedGrants& units_;
  net::Timer timer_;
  unsigned taking_ = 0;  // grants that Redis has not answered yet
  bool ends_ = false;    // takes no more units
  bool stopped_ = false;
  std::optional<bool> is_last_;  // whether this worker was the last of all to leave; set once it has left
};

}  // namespace weir::redis
