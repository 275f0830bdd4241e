// ServerControl holds what an operator has changed about one server at run time: whether the server is
// drained, and its weight. It also counts the requests in flight at the server.
//
// The server groups before and after a reload share the object. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace weir::upstream {

class ServerControl {
 public:
  // The requests that one pool has in flight at the server. Only the pool's worker changes the number.
  // `control` must outlive the object.
  class alignas(64) InFlight {
   public:
    explicit InFlight(ServerControl& control) : control_(control) {
      const std::scoped_lock lock(control_.mutex_);
      control_.in_flight_.push_back(this);
    }
    ~InFlight() {
      const std::scoped_lock lock(control_.mutex_);
      std::erase(control_.in_flight_, this);
    }
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;

    void add() noexcept { number_.store(number() + 1, std::memory_order_relaxed); }
    void remove() noexcept { number_.store(number() - 1, std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t number() const noexcept { return number_.load(std::memory_order_relaxed); }

   private:
    ServerControl& control_;
    std::atomic<std::uint32_t> number_{0};
  };

  // A drained server gets no requests. Requests that it already has continue.
  [[nodiscard]] bool is_drained() const noexcept { return drained_.load(std::memory_order_relaxed); }
  void set_drained(bool drained) noexcept { drained_.store(drained, std::memory_order_relaxed); }

  // Returns the server's weight. `configured`: the weight in the configuration, which must be below 2^16. The
  // weight that an operator has set counts only while the configuration still has the weight that the
  // operator replaced.
  [[nodiscard]] std::uint32_t weight(std::uint32_t configured) const noexcept {
    const auto both = weights_.load(std::memory_order_relaxed);
    return both >> 16U == configured ? both & 0xffffU : configured;
  }
  // Replaces the configured weight. REQUIRES: both weights are from 1 to kFullServiceWeight.
  void set_weight(std::uint32_t configured, std::uint32_t weight) noexcept {
    weights_.store(configured << 16U | weight, std::memory_order_relaxed);
  }
  // Must be called after a reload. Forgets the operator's weight if the configured weight is no longer the
  // weight that the operator replaced.
  void settle_weight(std::uint32_t configured) noexcept {
    if (weights_.load(std::memory_order_relaxed) >> 16U != configured)
      weights_.store(0, std::memory_order_relaxed);
  }

  // Returns the number of requests in flight at the server, of all workers and configurations together.
  [[nodiscard]] std::uint64_t in_flight() const {
    const std::scoped_lock lock(mutex_);
    std::uint64_t sum = 0;
    for (const auto* each : in_flight_) sum += each->number();
    return sum;
  }

 private:
  std::atomic<bool> drained_{false};
  // The configured weight that an operator replaced, times 2^16, plus the operator's weight. 0: no operator
  // has set a weight.
  std::atomic<std::uint32_t> weights_{0};
  mutable std::mutex mutex_;
  std::vector<const InFlight*> in_flight_;  // protected by the mutex
};

}  // namespace weir::upstream
