// Counts the open permits (src/proxy/ask/permits.hpp) of one listener, of all workers together, so that their
// number has a bound. A reload keeps the count of a listener.
//
// All workers share the object. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace weir::proxy {

class PermitCount {
 public:
  // Counts one permit as long as it exists. Movable.
  class Reservation {
   public:
    explicit Reservation(std::shared_ptr<PermitCount> count) noexcept : count_(std::move(count)) {}
    Reservation(Reservation&&) noexcept = default;
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation() {
      if (count_ != nullptr) count_->open_.fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    // Shared, because a listener may be removed before its permits end. Null if moved from.
    std::shared_ptr<PermitCount> count_;
  };

  // Counts one more permit, and returns its reservation. Returns nullopt if `most` permits are open.
  [[nodiscard]] static std::optional<Reservation> take(const std::shared_ptr<PermitCount>& count,
                                                       std::size_t most) noexcept {
    auto open = count->open_.load(std::memory_order_relaxed);
    while (open < most)
      if (count->open_.compare_exchange_weak(open, open + 1, std::memory_order_relaxed))
        return std::optional<Reservation>(std::in_place, count);
    return std::nullopt;
  }

 private:
  std::atomic<std::size_t> open_{0};
};

}  // namespace weir::proxy
