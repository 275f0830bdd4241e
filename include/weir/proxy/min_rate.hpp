// Whether a client keeps up a least rate while it is waited for: of the body that it sends, or of the answer
// that it takes. Against those who send or take an octet now and then, so that no single wait is too long.
//
// Only time that was spent waiting for the client counts. It is looked at in windows of `grace`: in each the
// client has to move `rate` octets a second on average, so what it moved at the beginning buys nothing later.
//
// Pure; belongs to one body.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>

namespace weir::proxy {

struct MinRate {
  std::uint64_t octets_per_second = 0;  // 0: any
  base::Duration grace{};
};

class MinRateCheck {
 public:
  explicit MinRateCheck(const MinRate& least) noexcept : least_(least) {}

  // Whether anything has to be noted at all.
  [[nodiscard]] bool counts() const noexcept { return least_.octets_per_second != 0; }

  // The client was waited for, and has moved `moved` octets since the body began. False: it is too slow.
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
  base::Duration waited_{};         // in the window under way
  std::uint64_t moved_before_ = 0;  // it
};

}  // namespace weir::proxy
