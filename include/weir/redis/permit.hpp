// What one exchange holds of a concurrency limit in Redis, given back when it goes out of scope.
//
// Owned by the exchange, on the worker's thread. The store outlives it.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/redis/store.hpp"

#include <utility>

namespace weir::redis {

class Permit {
 public:
  // Of a charge that `store` has carried out, or that it was told to hold. REQUIRES holds(*charge.limiter).
  Permit(Store& store, const limit::Charge& charge) noexcept : store_(&store), charge_(charge) {}
  Permit(Permit&& other) noexcept : store_(std::exchange(other.store_, nullptr)), charge_(other.charge_) {}
  Permit& operator=(Permit&&) = delete;
  ~Permit() {
    if (store_ != nullptr) store_->release(charge_);
  }

 private:
  Store* store_;  // null: another's now
  limit::Charge charge_;
};

}  // namespace weir::redis
