// Checks that a client sends its request body, or reads its answer, at a minimum rate. Without this check, a
// client could move an octet now and then, so that no single wait reached its deadline.
//
// Measures only the time that weir spends waiting for the client, and divides it into windows of `grace`. In
// each window the client must move `octets_per_second` on average. A fast beginning does not make up for a
// slow window.
//
// Pure. A MinRateCheck belongs to one body.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>

namespace weir::proxy {

struct MinRate {
  std::uint64_t octets_per_second = 0;  // 0: no minimum
  base::Duration grace{};               // length of a window
};

class MinRateCheck {
 public:
  explicit MinRateCheck(const MinRate& least) noexcept : least_(least) {}

  // Returns true if there is a minimum. Otherwise note() need not be called.
  [[nodiscard]] bool counts() const noexcept { return least_.octets_per_second != 0; }

  // Adds a wait for the client. `moved`: octets that the client has moved since the body began. Returns false
  // if the client is too slow.
  [[nodiscard]] bool note(base::Duration waited, std::uint64_t moved) noexcept {
    waited_ += waited;
    if (waited_ < least_.grace) return true;
    const double wanted =
        static_cast<double>(least_.octets_per_second) * std::chrono::duration<double>(waited_).count();
    const bool fast = moved >= moved_before_ && static_cast<double>(moved - moved_before_) >= wanted;
    waited_ = {};
    moved_before_ = moved;
    return fast;
  }

 private:
  MinRate least_;
  base::Duration waited_{};         // time spent waiting in the current window
  std::uint64_t moved_before_ = 0;  // `moved` when the current window began
};

}  // namespace weir::proxy
