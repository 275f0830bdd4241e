// The permits of concurrency limits in Redis that one worker's exchanges hold.
//
// A permit expires one lease after its last renewal. The worker renews all its permits three times in a
// lease. So the permits of a dead weir expire within a lease, and a request that lasts longer than a lease
// stays counted. A renewal enters a permit again that Redis has lost.
//
// Permits of one key and cost are alike: whichever is released first stands for the exchange that ended.
// Pure; belongs to the session.
#pragma once

#include "redis/scripts/line_numbers.hpp"

#include "weir/limit/charge.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace weir::redis {

// Returns true if the line renews a permit.
[[nodiscard]] inline bool renews(const Refund& line) noexcept {
  return limit::holds(*line.charge.limiter) && line.actual != 0;
}

class PermitSet {
 public:
  // `holder` identifies this worker's permits: random, of which 53 bits count.
  PermitSet(std::uint64_t holder, base::Duration lease) noexcept;

  // next() returns new permits for one bill. of() returns those of an earlier bill again.
  [[nodiscard]] PermitId next() noexcept { return of(++serial_); }
  [[nodiscard]] PermitId of(std::uint64_t serial) const noexcept { return {holder_, serial, lease_}; }

  // hold() is for a charge that Redis has carried out. hold_unasked() is for one that Redis was not asked
  // for; the next renewal enters it. If memory runs out they throw, and hold nothing.
  void hold(const limit::Charge& charge, std::uint64_t serial);
  void hold_unasked(const limit::Charge& charge);

  // Removes one permit held for such a charge. Returns the line that releases it in Redis, if Redis knows it.
  [[nodiscard]] std::optional<Refund> release(const limit::Charge& charge);

  // Returns true if the line renews a permit that has been released since. Sending it would enter the permit
  // again.
  [[nodiscard]] bool is_outlived(const Refund& line) const noexcept;

  // Calls `tell` with renewals of all permits, in pieces that do not keep Redis busy for long.
  void renew(const std::function<void(std::span<const Refund>)>& tell);
  // Calls `tell` with releases of all permits, likewise.
  void give_up(const std::function<void(std::span<const Refund>)>& tell);

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] base::Duration interval() const noexcept { return lease_ / 3; }

 private:
  struct Entry {
    limit::Charge charge;
    std::uint64_t serial;
    bool known;  // Redis probably has it
  };
  struct KeyHash {
    std::size_t operator()(const limit::Key& key) const noexcept { return key.lo; }  // already a digest
  };
  void put(const limit::Charge& charge, std::uint64_t serial, bool known);
  template <class Take>
  void visit(Take take, const std::function<void(std::span<const Refund>)>& tell);
  [[nodiscard]] Refund amendment(const Entry& entry, limit::Cost actual) const noexcept;

  std::uint64_t holder_;
  std::uint64_t serial_ = 0;
  base::Duration lease_;
  std::unordered_map<limit::Key, std::vector<Entry>, KeyHash> entries_;
};

}  // namespace weir::redis
