// When a message is to be sent, and sent again: backoff with jitter, and a rate limit of its own, which is a
// token bucket of weir's. Plain values; time and randomness are arguments.
//
// There is one message at most. A newer one takes the place of one that has not got through: an alert that
// began and ended while its receiver was away has ended, and that is what the receiver hears, whenever it is
// back: a message is tried for as long as it is the newest. After so many attempts it is overdue.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/spacing.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace weir::observe {

class Delivery {
 public:
  struct Settings {
    limit::Spacing attempts;  // how often one may be made
    unsigned most = 5;        // of one message, until it is overdue
  };
  static constexpr base::Duration kFirstPause{
      1'000'000};  // at most, after the first attempt; then twice as long
  static constexpr base::Duration kLongestPause{300'000'000};

  explicit Delivery(const Settings& settings) noexcept : settings_(settings) {}

  // What is to be sent from now on. True: it took the place of one that was not.
  bool put(std::string message, base::TimePoint now);

  // The message whose attempt is due, which counts as begun; null: none, or one is under way. The message
  // stays until the next put() or the attempt's end.
  [[nodiscard]] const std::string* begin(base::TimePoint now);

  enum class End : std::uint8_t {
    Sent,
    Again,   // it will be tried again
    GivenUp  // it will not: trying again would be no use, or there is nobody to try it for ever
  };
  // Of the attempt under way. `hopeless`: another would end like it. `random`: any 64 bits.
  End sent() noexcept;
  End failed(bool hopeless, base::TimePoint now, std::uint64_t random) noexcept;

  // From now on a message that is overdue is given up.
  void give_up_what_is_overdue() noexcept { gives_up_ = true; }
  // Returns true if a newer message has come since the attempt under way began.
  [[nodiscard]] bool is_replaced() const noexcept { return replaced_; }
  // Whether so many attempts of the message have failed.
  [[nodiscard]] bool is_overdue() const noexcept { return overdue_; }

  [[nodiscard]] bool empty() const noexcept { return !message_.has_value(); }

 private:
  Settings settings_;
  std::optional<std::string> message_;
  bool under_way_ = false;
  bool replaced_ = false;  // by a newer one, while its attempt was under way
  bool overdue_ = false;
  bool gives_up_ = false;
  unsigned attempts_ = 0;
  base::TimePoint due_{};
  limit::Ticks tat_ = 0;  // of settings_.attempts
};

}  // namespace weir::observe
