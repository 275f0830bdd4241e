// The permits of concurrency limits in Redis that one worker's requests hold.
//
// A permit expires one lease (`lease_time`) after its last renewal. The worker renews all its permits three
// times in a lease. So the permits of a crashed weir expire within a lease, but a request may last longer
// than a lease. If Redis has lost a permit, the next renewal restores it.
//
// Permits of the same key and cost are interchangeable. When one of several requests with such permits ends,
// any of these permits may be released. Pure; belongs to a PermitRenewer.
#pragma once

#include "redis/scripts/charge_numbers.hpp"

#include "weir/limit/charge.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace weir::redis {

// Returns true if `refund` renews a permit. A Refund may also release a permit, or change the cost of a
// charge.
[[nodiscard]] inline bool renews(const Refund& refund) noexcept {
  return limit::holds(*refund.charge.limiter) && refund.actual != 0;
}

class PermitSet {
 public:
  // `holder`: a random number that identifies this worker; only its lowest 53 bits are used.
  PermitSet(std::uint64_t holder, base::Duration lease) noexcept;

  // next() returns the permit ID for a new bill (the charges of one request). of() returns the permit ID of
  // the bill with this serial number.
  [[nodiscard]] PermitId next() noexcept { return of(++serial_); }
  [[nodiscard]] PermitId of(std::uint64_t serial) const noexcept { return {holder_, serial, lease_}; }

  // Stores the permit of a charge that Redis has made. Stores nothing if it throws std::bad_alloc.
  void hold(const limit::Charge& charge, std::uint64_t serial);
  // Stores the permit of a charge that was not sent to Redis. The next renewal writes the permit to Redis.
  // Stores nothing if it throws std::bad_alloc.
  void hold_without_redis(const limit::Charge& charge);

  // Removes one permit of the charge's key and cost. Returns the refund that releases the permit in Redis;
  // nullopt if the permit was not written to Redis.
  [[nodiscard]] std::optional<Refund> release(const limit::Charge& charge);

  // Returns true if `refund` renews a permit that has been released since the renewal was sent. The renewal
  // must not be sent again, because it would restore the permit.
  [[nodiscard]] bool is_released_since(const Refund& refund) const noexcept;

  // Calls `send` with renewals of all permits, in groups small enough that Redis is not busy for long.
  void renew(const std::function<void(std::span<const Refund>)>& send);
  // Calls `send` with releases of all permits, in groups as small as the groups of renew().
  void give_up(const std::function<void(std::span<const Refund>)>& send);

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] base::Duration interval() const noexcept { return lease_ / 3; }

 private:
  struct Entry {
    limit::Charge charge;
    std::uint64_t serial;
    bool in_redis;  // true: the permit was written to Redis; false: not yet
  };
  struct KeyHash {
    // The key is a digest, so it needs no further hashing.
    std::size_t operator()(const limit::Key& key) const noexcept { return key.lo; }
  };
  void put(const limit::Charge& charge, std::uint64_t serial, bool in_redis);
  template <class Take>
  void visit(Take take, const std::function<void(std::span<const Refund>)>& send);
  [[nodiscard]] Refund refund_for(const Entry& entry, limit::Cost actual) const noexcept;

  std::uint64_t holder_;
  std::uint64_t serial_ = 0;
  base::Duration lease_;
  std::unordered_map<limit::Key, std::vector<Entry>, KeyHash> entries_;
};

}  // namespace weir::redis
