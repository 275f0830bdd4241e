// When weir orders a certificate again. Pure: times and chance are arguments.
#pragma once

#include "weir/base/time.hpp"

#include <chrono>
#include <optional>

namespace weir::acme {

using SysTime = std::chrono::sys_seconds;  // time of the system's clock, because certificates have such times

// A period in which the authority wants the certificate to be renewed (ARI, RFC 9773).
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

// Returns the time at which to renew. Without a window, a third of the lifetime is then left. With a window,
// the time is in the window, at the share `chance` of it (0 to 1), because RFC 9773 §4.2 wants a random time.
// At the latest, a tenth of the lifetime is left.
[[nodiscard]] SysTime renewal_time(const Validity& validity, const std::optional<RenewalWindow>& window,
                                   double chance) noexcept;

inline constexpr std::chrono::hours kLongestRetry{6};
inline constexpr std::chrono::hours kLongestWanted{24};  // the longest pause that weir grants an authority
// Returns the pause after `failures` failed orders in a row: `first`, doubled with each further failure, at
// most kLongestRetry. If `first` is longer than kLongestRetry, the pause is always `first`.
[[nodiscard]] std::chrono::seconds retry_pause(base::Duration first, unsigned failures) noexcept;

// Returns how long weir orders no second certificate after it has got one, even if the certificate is due
// already: a sixth of the lifetime, at most a day. An authority that is in error about windows or dates is
// therefore not flooded with orders.
[[nodiscard]] std::chrono::seconds pause_after_success(const Validity& validity) noexcept;

// Returns whether weir must wait until `next`, a time that some weir has written as the end of a pause.
// `first`: as for retry_pause(). No pause is longer than a day or `first`; a time that is later comes from a
// clock that was ahead, so weir does not wait for it.
[[nodiscard]] bool is_pause(SysTime next, SysTime now, base::Duration first) noexcept;

// Returns when to ask again for the window. `retry_after`: what the authority said, if it said something;
// bounded from a minute to a day (RFC 9773 §4.3.3 advises such bounds). Without it: after 6 hours.
[[nodiscard]] std::chrono::seconds window_pause(std::optional<std::chrono::seconds> retry_after) noexcept;

}  // namespace weir::acme
