// One worker's permits of concurrency limits in Redis, and the timer that renews them. The sessions of a
// cluster share one object, because a permit may move from one node to another.
//
// Belongs to one worker.
#pragma once

#include "redis/connection/pipeline.hpp"
#include "redis/store/permit_set.hpp"

#include "weir/limit/charge.hpp"
#include "weir/net/asio.hpp"
#include "weir/redis/store.hpp"

#include <memory>
#include <span>

namespace weir::redis {

// Sends refunds, releases and renewals to Redis.
class RefundSink {
 public:
  [[nodiscard]] virtual bool is_available() const noexcept = 0;  // returns false if Redis is unavailable
  virtual void refund(std::span<const Refund> refunds) = 0;

 protected:
  ~RefundSink() = default;
};

class PermitRenewer : public std::enable_shared_from_this<PermitRenewer> {
 public:
  // `refund_sink` and `stats` must outlive this object.
  PermitRenewer(net::Executor executor, base::Duration lease, RefundSink& refund_sink, StoreStats& stats);

  [[nodiscard]] std::uint64_t next_permit() noexcept { return permits_.next().serial; }
  // Returns a number for a call of a script. Permits and calls take their numbers from one sequence of the
  // worker, for all nodes of a cluster. The numbers stay below 2^53.
  [[nodiscard]] std::uint64_t next_number() noexcept { return next_permit(); }
  [[nodiscard]] PermitId of(std::uint64_t permit) const noexcept { return permits_.of(permit); }

  // Stores the permits that Redis has granted to a bill, so that they are renewed.
  void keep(const Call& call);
  // Stores a permit for a request that was admitted while Redis was unavailable. The next renewal writes the
  // permit to Redis.
  void hold(const limit::Charge& charge);
  void release(const limit::Charge& charge);

  [[nodiscard]] bool is_released_since(const Refund& refund) const noexcept {
    return permits_.is_released_since(refund);
  }

  // Renews all permits in Redis. Does nothing while Redis is unavailable.
  void renew();
  // Releases all permits, and stops renewals.
  void give_up();

 private:
  void renew_later();

  PermitSet permits_;
  RefundSink& refund_sink_;
  StoreStats& stats_;
  net::Timer timer_;
  bool waiting_ = false;  // true: timer_ is set
  bool ended_ = false;
};

}  // namespace weir::redis
