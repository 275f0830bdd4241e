// What one worker takes in advance of hot keys, and how bills are paid from it: lines of a bill that can be
// paid here are, and the rest is asked of Redis. All or nothing over both: a unit of a bill that is refused
// there is put back.
//
// Belongs to the store's worker; what is taken is all workers' (redis::UnitLeases).
#pragma once

#include "redis/connection/backend.hpp"

#include "weir/net/asio.hpp"
#include "weir/redis/store.hpp"
#include "weir/redis/unit_leases.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <span>

namespace weir::redis {

class Store::Leasing final : public std::enable_shared_from_this<Store::Leasing> {
 public:
  // `units` outlives the executor's loop.
  Leasing(net::Executor executor, std::shared_ptr<Backend> backend, UnitLeases& units);

  void start();
  // Takes nothing in advance any more. The last of all workers' gives back whatever they hold, so much at a
  // time as Redis answers. True: nothing of it is left here, or Redis is away; else it is to be called again.
  [[nodiscard]] bool finish();
  // The same at once, and without waiting. Before the backend stops.
  void stop();

  // Whether any of it may be paid here.
  [[nodiscard]] static bool concerns(Charges charges) noexcept;

  // As Store's. After an error the lines that were paid here are not among those unasked; where memory runs
  // out they are put back.
  [[nodiscard]] net::Task<net::ErrorCode> charge(Charges charges, Outcomes outcomes,
                                                 base::TimePoint& server_now, limit::LineSet& unasked);
  // Of a bill that can be paid here in part: the rest alone says whether it is refused.
  [[nodiscard]] std::optional<base::TimePoint> refuses(Charges charges, Outcomes outcomes) noexcept;
  // Of what came from here. REQUIRES outcome.in_advance.
  void refund(const limit::Charge& charge, const limit::Outcome& outcome) {
    give_back(units_.put_back(charge, outcome));
  }
  [[nodiscard]] bool holds_for(const limit::Charge& charge, limit::Outcome& outcome) const;
  void forget(const limit::Charge& charge) { units_.forget(charge); }

 private:
  void put_back(Charges charges, std::span<const limit::Outcome> outcomes) noexcept;
  void take_in_advance(Charges charges, Pipeline::Time now) noexcept;
  static net::Task<void> take(std::shared_ptr<Leasing> self, limit::Charge lease);
  void give_back(std::span<const Refund> units);
  void sweep_later();
  [[nodiscard]] bool leave() noexcept;

  net::Executor executor_;
  const std::shared_ptr<Backend> backend_;
  UnitLeases& units_;
  net::Timer timer_;
  unsigned taking_ = 0;  // leases under way
  bool ends_ = false;    // takes nothing any more
  bool stopped_ = false;
  std::optional<bool> is_last_;  // of all workers', once it has left
};

}  // namespace weir::redis
