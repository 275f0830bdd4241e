// What the exchanges of one worker hold of concurrency limits in Redis.
//
// A permit there lives as long as its lease, and the worker renews all of its permits three times as often:
// so what a weir holds when it dies comes free once the lease is over, and a request that takes longer than a
// lease stays counted while its weir lives. What Redis has lost meanwhile a renewal enters again.
//
// Permits of one key and cost are alike: whichever of them comes back first stands for the exchange that
// ended. Pure; belongs to the session.
#pragma once

#include "redis/scripts/line.hpp"

#include "weir/limit/charge.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace weir::redis {

// Tells Redis that a permit is still held.
[[nodiscard]] inline bool renews(const Refund& line) noexcept {
  return limit::holds(*line.charge.limiter) && line.actual != 0;
}

class Leases {
 public:
  // `holder` tells the permits of this worker from all others': random, of which 53 bits count.
  Leases(std::uint64_t holder, base::Duration lease) noexcept;

  // The permits of one bill, which no other has had; and the same ones again.
  [[nodiscard]] Hold next() noexcept { return of(++serial_); }
  [[nodiscard]] Hold of(std::uint64_t serial) const noexcept { return {holder_, serial, lease_}; }

  // Held from now on, for a charge that Redis has carried out; or, in the second case, without having been
  // asked: it hears of it with the next renewal. Where memory runs out they throw, and nothing is held.
  void hold(const limit::Charge& charge, std::uint64_t serial);
  void hold_unasked(const limit::Charge& charge);

  // One that was held for such a charge is not any more: what to tell Redis, if it knows of it.
  [[nodiscard]] std::optional<Refund> release(const limit::Charge& charge);

  // It renews a permit that has come back since: to tell Redis now would be to enter it again.
  [[nodiscard]] bool is_outlived(const Refund& line) const noexcept;

  // Tells of all that is held, in pieces that do not keep Redis busy for long.
  void renew(const std::function<void(std::span<const Refund>)>& tell);
  // The same to give all of it back.
  void give_up(const std::function<void(std::span<const Refund>)>& tell);

  [[nodiscard]] bool empty() const noexcept { return places_.empty(); }
  [[nodiscard]] base::Duration interval() const noexcept { return lease_ / 3; }

 private:
  struct Place {
    limit::Charge charge;
    std::uint64_t serial;
    bool known;  // to Redis, as far as we know
  };
  struct KeyHash {
    std::size_t operator()(const limit::Key& key) const noexcept { return key.lo; }  // a digest already
  };
  void put(const limit::Charge& charge, std::uint64_t serial, bool known);
  template <class Take>
  void visit(Take take, const std::function<void(std::span<const Refund>)>& tell);
  [[nodiscard]] Refund amendment(const Place& place, limit::Cost actual) const noexcept;

  std::uint64_t holder_;
  std::uint64_t serial_ = 0;
  base::Duration lease_;
  std::unordered_map<limit::Key, std::vector<Place>, KeyHash> places_;
};

}  // namespace weir::redis
