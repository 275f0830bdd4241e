// What a log is told of something that is down: at once that it is, and while it stays so, when the reason
// has changed, but no more often than every ten seconds. Of what comes and goes all the time, the first
// kMost times in ten seconds. Pure.
#pragma once

#include <chrono>
#include <string>
#include <utility>

namespace weir::redis {

class Complaint {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr unsigned kMost = 3;

  // Whether to say this line. REQUIRES that it is not empty.
  [[nodiscard]] bool raise(std::string line, Time now) {
    constexpr std::chrono::seconds kPause{10};
    if (!said_.empty() && (line == said_ || now < next_)) return false;
    if (now >= counted_until_) {
      counted_until_ = now + kPause;
      count_ = 0;
    }
    if (count_ == kMost) {
      unsaid_ += silent_ ? 0 : 1;
      silent_ = true;
      return false;
    }
    ++count_;
    unsaid_ -= std::exchange(silent_, false) ? 1 : 0;
    said_ = std::move(line);
    next_ = now + kPause;
    return true;
  }
  // It is up. Whether to say so: not where nothing was said of its being down.
  [[nodiscard]] bool settle() noexcept {
    said_.clear();
    return !std::exchange(silent_, false);
  }
  // How often it was down before, and nothing was said of it, since this was asked last.
  [[nodiscard]] unsigned unsaid() noexcept { return std::exchange(unsaid_, 0); }

 private:
  std::string said_;
  Time next_{}, counted_until_{};
  unsigned count_ = 0;   // of those said until then
  bool silent_ = false;  // it is down, and nothing was said of it
  unsigned unsaid_ = 0;
};

}  // namespace weir::redis
