// The implementation of a store: one connection, or one connection to each master of a cluster.
#pragma once

#include "redis/connection/pipeline.hpp"
#include "redis/connection/reason.hpp"
#include "redis/store/permit_renewer.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/slot_hash.hpp"
#include "weir/net/task.hpp"
#include "weir/redis/store.hpp"

#include <span>
#include <string>

namespace weir::redis {

// Implements the Store functions of the same names, which Store documents. Belongs to the worker.
class Store::Backend : public RefundSink {
 public:
  virtual ~Backend() = default;

  virtual void start() = 0;
  virtual void stop() = 0;

  [[nodiscard]] virtual net::Task<net::ErrorCode> charge(Charges charges, Outcomes outcomes,
                                                         base::TimePoint& server_now,
                                                         limit::ChargeSet& unanswered) = 0;
  // Sends a bill (the charges of one request) that has only one charge. If begin() returns an error, nothing
  // was sent, and the call's coroutine will not be resumed.
  [[nodiscard]] virtual net::ErrorCode begin(Call& call) = 0;
  [[nodiscard]] virtual std::optional<base::TimePoint> refuses(Charges charges,
                                                               Outcomes outcomes) noexcept = 0;
  // Resets a key. Returns false if the command could not be sent.
  [[nodiscard]] virtual bool forget(const limit::Charge& charge) = 0;
  virtual void hold(const limit::Charge& charge) = 0;
  virtual void release(const limit::Charge& charge) = 0;

  // Returns true if every command has received its reply, or if there is no connection.
  [[nodiscard]] virtual bool is_quiet() const noexcept = 0;

  // Converts `now` to the clock of the Redis server that has the key. The result is an estimate.
  [[nodiscard]] virtual base::TimePoint server_time(const limit::Key& key,
                                                    Pipeline::Time now) const noexcept = 0;
  [[nodiscard]] virtual StoreState state() const noexcept = 0;
  [[nodiscard]] virtual const StoreStats& stats() const noexcept = 0;
  [[nodiscard]] virtual const std::string& last_error() const noexcept = 0;
  [[nodiscard]] std::string why_down() const { return why_down_.get(); }

 protected:
  Reason why_down_;
};

}  // namespace weir::redis
