// One request's permit of a concurrency limit in Redis. The destructor releases the permit.
//
// The request's exchange owns the permit and uses it on the worker's thread. The store must outlive the
// permit.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/redis/store.hpp"

#include <utility>

namespace weir::redis {

class Permit {
 public:
  // Takes over the permit of a charge: `store` has made the charge in Redis, or the caller has called
  // Store::hold() for the charge. REQUIRES: limit::holds(*charge.limiter).
  Permit(Store& store, const limit::Charge& charge) noexcept : store_(&store), charge_(charge) {}
  Permit(Permit&& other) noexcept : store_(std::exchange(other.store_, nullptr)), charge_(other.charge_) {}
  Permit& operator=(Permit&&) = delete;
  ~Permit() {
    if (store_ != nullptr) store_->release(charge_);
  }

 private:
  Store* store_;  // null after this permit was moved
  limit::Charge charge_;
};

}  // namespace weir::redis
