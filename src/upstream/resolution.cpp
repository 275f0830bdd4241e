#include "weir/upstream/resolution.hpp"

#include <algorithm>
#include <utility>

namespace weir::upstream {

namespace {

// Returns the addresses of `told`: first the known ones in their old order, then the new ones. The order in
// `told` is ignored, because name servers rotate addresses.
Addresses merged(const Addresses& known, const Addresses& told) {
  Addresses next;
  const auto within = [](const Addresses& some, const net::RawEndpoint& one) {
    return std::find(some.begin(), some.end(), one) != some.end();
  };
  for (const auto& one : known)
    if (within(told, one)) next.push_back(one);
  for (const auto& one : told)
    if (!within(next, one)) next.push_back(one);
  if (next.size() > Resolution::kMostAddresses) next.resize(Resolution::kMostAddresses);
  return next;
}

}  // namespace

Resolution::Resolution(base::Duration period, base::TimePoint now, std::uint64_t random,
                       bool unknown) noexcept
    : period_(period), due_(after(now, random, unknown)), failing_(unknown) {}

base::TimePoint Resolution::after(base::TimePoint now, std::uint64_t random, bool unknown) const noexcept {
  const auto period = unknown ? std::min(period_, kWhileUnknown) : period_;
  const auto tenth = period.count() / 10;
  const auto chance = static_cast<base::Duration::rep>(random % static_cast<std::uint64_t>(2 * tenth + 1));
  return now + period + base::Duration{chance - tenth};
}

Resolution::Step Resolution::take(const Addresses& known, const base::Result<Addresses>& answer,
                                  base::TimePoint now, std::uint64_t random) {
  const bool failed = !answer || answer->empty();
  due_ = after(now, random, failed && known.empty());
  Step step{.turned = std::exchange(failing_, failed) != failed};
  if (failed) {
    step.outcome = Outcome::Failed;
    return step;
  }
  step.addresses = merged(known, *answer);
  if (step.addresses != known) step.outcome = Outcome::Changed;
  return step;
}

}  // namespace weir::upstream
