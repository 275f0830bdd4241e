// What stands behind a store: the one connection, or those to the masters of a cluster.
#pragma once

#include "redis/holding.hpp"
#include "redis/lot.hpp"
#include "redis/pipeline.hpp"
#include "redis/reason.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/place.hpp"
#include "weir/net/task.hpp"
#include "weir/redis/store.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

namespace weir::redis {

// What whoever leases is told beside the outcomes of a bill.
struct Telling {
  // Takes what Redis said of the states of the lines that were asked, kAnswerNumbers each.
  std::span<std::int64_t> answers{};
  // The lines with a lease that a node of a cluster has charged though another one refused the bill: to make
  // something of them is the caller's.
  limit::LineSet in_vain = 0;
};

// Takes what a late reply has charged a bucket with of which units are taken in advance: Redis could not have
// it back where others were charged behind it.
using LateSink = std::function<void(const limit::Charge&, const Trip&)>;

// Belongs to the worker. What is said of Store's functions of these names holds here.
class Store::Backend : public Teller {
 public:
  virtual ~Backend() = default;

  // Before start(); none: all is given back.
  void hand_late_to(LateSink sink) { late_ = std::move(sink); }

  virtual void start() = 0;
  virtual void stop() = 0;

  // `telling`: null where nobody leases.
  [[nodiscard]] virtual net::Task<net::ErrorCode> charge(Charges charges, Outcomes outcomes,
                                                         base::TimePoint& server_now, limit::LineSet& unasked,
                                                         Telling* telling) = 0;
  // Sends a bill of one line. An error: nothing was sent and nobody will resume the call.
  [[nodiscard]] virtual net::ErrorCode begin(Call& call) = 0;
  [[nodiscard]] virtual bool refuses(Charges charges, Outcomes outcomes) noexcept = 0;
  // False: it could not be sent.
  [[nodiscard]] virtual bool forget(const limit::Charge& charge) = 0;
  virtual void hold(const limit::Charge& charge) = 0;
  virtual void release(const limit::Charge& charge) = 0;

  // Whatever was asked and told has its answer, or there is nobody to give one.
  [[nodiscard]] virtual bool is_quiet() const noexcept = 0;

  // Redis's clock of the moment where the key is kept, as far as is known.
  [[nodiscard]] virtual base::TimePoint server_time(const limit::Key& key,
                                                    Pipeline::Time now) const noexcept = 0;
  [[nodiscard]] virtual StoreState state() const noexcept = 0;
  [[nodiscard]] virtual const StoreStats& stats() const noexcept = 0;
  [[nodiscard]] virtual const std::string& last_error() const noexcept = 0;
  [[nodiscard]] std::string why_down() const { return why_down_.get(); }

 protected:
  LateSink late_;
  Reason why_down_;
};

}  // namespace weir::redis
