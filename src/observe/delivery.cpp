#include "weir/observe/delivery.hpp"

#include <algorithm>
#include <utility>

namespace weir::observe {

bool Delivery::put(std::string message, base::TimePoint now) {
  const bool replaces = message_.has_value();
  message_ = std::move(message);
  replaced_ = under_way_;
  attempts_ = 0;
  overdue_ = false;
  due_ = now;
  return replaces;
}

const std::string* Delivery::begin(base::TimePoint now) {
  if (!message_ || under_way_ || now < due_) return nullptr;
  const auto step = settings_.attempts.step(tat_, now, 1);
  if (!step.outcome.allowed) {
    due_ = now + step.outcome.retry_after;
    return nullptr;
  }
  tat_ = step.tat;
  ++attempts_;
  under_way_ = true;
  return &*message_;
}

Delivery::End Delivery::sent() noexcept {
  under_way_ = false;
  if (!std::exchange(replaced_, false)) message_.reset();
  return End::Sent;
}

// Ends an attempt that failed. The next one follows after a random pause, from zero up to a maximum (full
// jitter), so that many weir processes do not retry at the same time.
Delivery::End Delivery::failed(bool hopeless, base::TimePoint now, std::uint64_t random) noexcept {
  under_way_ = false;
  if (std::exchange(replaced_, false)) return End::Again;
  overdue_ = attempts_ >= settings_.most;
  if (hopeless || (overdue_ && gives_up_)) {
    message_.reset();
    return End::GivenUp;
  }
  const auto doublings = std::min(attempts_ - 1, 20U);
  const auto pause = std::min(kLongestPause, kFirstPause * (std::int64_t{1} << doublings));
  due_ = now +
         base::Duration{static_cast<std::int64_t>(random % (static_cast<std::uint64_t>(pause.count()) + 1))};
  return End::Again;
}

}  // namespace weir::observe
