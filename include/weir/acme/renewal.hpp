// Decides when weir renews a certificate, and how long it waits between orders. Pure: times and chance are
// arguments.
#pragma once

#include "weir/base/time.hpp"

#include <chrono>
#include <optional>

namespace weir::acme {

using SysTime = std::chrono::sys_seconds;  // the system's clock, because certificates contain such times

// The period in which the authority wants weir to renew a certificate (ARI, RFC 9773).
struct RenewalWindow {
  SysTime start;
  SysTime end;
  friend bool operator==(const RenewalWindow&, const RenewalWindow&) = default;
};

// A certificate's period of validity.
struct Validity {
  SysTime not_before;
  SysTime not_after;
};

// Returns the time at which to renew. Without a window, a third of the lifetime is left at this time. With a
// window, the time is inside the window. `chance` (0 to 1) then chooses where, because RFC 9773 §4.2 wants a
// random time. A tenth of the lifetime or more is always left.
[[nodiscard]] SysTime renewal_time(const Validity& validity, const std::optional<RenewalWindow>& window,
                                   double chance) noexcept;

inline constexpr std::chrono::hours kLongestRetry{6};
inline constexpr std::chrono::hours kLongestWanted{24};  // the longest pause that an authority may ask for
// Returns the pause after `failures` failed orders in a row: `first`, doubled with each further failure, at
// most kLongestRetry. If `first` is longer than kLongestRetry, the pause is always `first`.
[[nodiscard]] std::chrono::seconds retry_pause(base::Duration first, unsigned failures) noexcept;

// Returns how long weir does not order the same certificate again after a successful order, even if the
// certificate is due: a sixth of the lifetime, at most a day. So wrong windows or dates of an authority do
// not cause a flood of orders.
[[nodiscard]] std::chrono::seconds pause_after_success(const Validity& validity) noexcept;

// Returns true if weir must wait until `next`, which this or another weir has stored as the end of a pause.
// Returns false if `next` is too far in the future: more than a day and more than `first`. Only a wrong clock
// can have given such a time. `first`: as for retry_pause().
[[nodiscard]] bool is_pause(SysTime next, SysTime now, base::Duration first) noexcept;

// Returns how long weir waits before it asks for the renewal window again. `retry_after`: the time that the
// authority asked for, if any; it is bounded from a minute to a day (RFC 9773 §4.3.3 advises such bounds). If
// the authority asked for no time, the result is 6 hours.
[[nodiscard]] std::chrono::seconds window_pause(std::optional<std::chrono::seconds> retry_after) noexcept;

}  // namespace weir::acme
