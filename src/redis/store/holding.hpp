// What one worker holds of concurrency limits in Redis, and the timer that renews it: a session's, or of all
// nodes of a cluster together, for keys move between them while they are held.
//
// Belongs to one worker.
#pragma once

#include "redis/connection/pipeline.hpp"
#include "redis/store/leases.hpp"

#include "weir/limit/charge.hpp"
#include "weir/net/asio.hpp"
#include "weir/redis/store.hpp"

#include <memory>
#include <span>

namespace weir::redis {

// Whoever tells Redis.
class Teller {
 public:
  [[nodiscard]] virtual bool is_there() const noexcept = 0;  // Redis: else there is nobody to tell
  virtual void refund(std::span<const Refund> refunds) = 0;

 protected:
  ~Teller() = default;
};

class Holding : public std::enable_shared_from_this<Holding> {
 public:
  // `teller` and `stats` outlive it.
  Holding(net::Executor executor, base::Duration lease, Teller& teller, StoreStats& stats);

  [[nodiscard]] std::uint64_t next_permit() noexcept { return leases_.next().serial; }
  // For a call of a script: the numbers of permits are the worker's, over all nodes of a cluster, and below
  // 2^53.
  [[nodiscard]] std::uint64_t next_number() noexcept { return next_permit(); }
  [[nodiscard]] Hold of(std::uint64_t permit) const noexcept { return leases_.of(permit); }

  // Of a bill that was answered: what it took.
  void keep(const Call& call);
  // Redis could not be asked, and the request goes on.
  void hold(const limit::Charge& charge);
  void release(const limit::Charge& charge);

  [[nodiscard]] bool is_outlived(const Refund& line) const noexcept { return leases_.is_outlived(line); }

  // Tells Redis of all that is held, if it is there.
  void renew();
  // Gives all of it back, for good.
  void give_up();

 private:
  void renew_later();

  Leases leases_;
  Teller& teller_;
  StoreStats& stats_;
  net::Timer timer_;
  bool waiting_ = false;  // timer_ is set
  bool ended_ = false;
};

}  // namespace weir::redis
