#include "weir/acme/renewal.hpp"

#include <algorithm>

namespace weir::acme {

SysTime renewal_time(const Validity& validity, const std::optional<RenewalWindow>& window,
                     double chance) noexcept {
  const auto lifetime = validity.not_after - validity.not_before;
  if (!window) return validity.not_after - lifetime / 3;
  const auto length = static_cast<double>((window->end - window->start).count());
  const std::chrono::seconds into(static_cast<std::int64_t>(length * std::clamp(chance, 0.0, 1.0)));
  return std::min(window->start + into, validity.not_after - lifetime / 10);
}

std::chrono::seconds retry_pause(base::Duration first, unsigned failures) noexcept {
  auto pause = std::max(std::chrono::ceil<std::chrono::seconds>(first), std::chrono::seconds(1));
  const auto most = std::max<std::chrono::seconds>(pause, kLongestRetry);
  for (unsigned i = 1; i < failures && pause < most; ++i) pause *= 2;
  return std::min(pause, most);
}

std::chrono::seconds pause_after_success(const Validity& validity) noexcept {
  constexpr std::chrono::seconds kLeast{1}, kMost{24 * 3600};
  return std::clamp((validity.not_after - validity.not_before) / 6, kLeast, kMost);
}

bool is_pause(SysTime next, SysTime now, base::Duration first) noexcept {
  const auto longest =
      std::max<std::chrono::seconds>(std::chrono::ceil<std::chrono::seconds>(first), kLongestWanted);
  return now < next && next <= now + longest;
}

std::chrono::seconds window_pause(std::optional<std::chrono::seconds> retry_after) noexcept {
  constexpr std::chrono::seconds kLeast{60}, kUsual{6 * 3600}, kMost{24 * 3600};
  return std::clamp(retry_after.value_or(kUsual), kLeast, kMost);
}

}  // namespace weir::acme
