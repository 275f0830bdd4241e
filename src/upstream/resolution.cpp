#include "weir/upstream/resolution.hpp"

#include <algorithm>
#include <utility>

namespace weir::upstream {

namespace {

// Returns the addresses in `found` (an answer): first those in `known`, in the order of `known`, then the new
// ones. Ignores the order in `found`, because name servers rotate addresses.
Addresses merged(const Addresses& known, const Addresses& found) {
  Addresses next;
  const auto within = [](const Addresses& some, const net::RawEndpoint& one) {
    return std::find(some.begin(), some.end(), one) != some.end();
  };
  for (const auto& one : known)
    if (within(found, one)) next.push_back(one);
  for (const auto& one : found)
    if (!within(next, one)) next.push_back(one);
  return first_addresses(std::move(next));
}

}  // namespace

Addresses first_addresses(Addresses addresses) {
  if (addresses.size() > Resolution::kMostAddresses) addresses.resize(Resolution::kMostAddresses);
  return addresses;
}

Resolution::Resolution(Period period, base::TimePoint now, bool unknown) noexcept
    : period_(period), failing_(unknown), due_(now + (unknown ? after_failure() : period.least)) {}

base::Duration Resolution::after_failure() const noexcept {
  return std::clamp(kAfterFailure, period_.least, period_.most);
}

base::Duration Resolution::after_answer(std::optional<base::Duration> ttl,
                                        std::uint64_t random) const noexcept {
  const auto tenth = period_.most.count() / 10;
  const auto chance = static_cast<base::Duration::rep>(random % static_cast<std::uint64_t>(2 * tenth + 1));
  const auto most = period_.most + base::Duration{chance - tenth};
  return ttl ? std::min(most, std::max(*ttl, period_.least)) : most;
}

bool Resolution::note(bool failed, std::optional<base::Duration> ttl, base::TimePoint now,
                      std::uint64_t random) {
  due_ = now + (failed ? after_failure() : after_answer(ttl, random));
  return std::exchange(failing_, failed) != failed;
}

Resolution::Step Resolution::take(const Addresses& known, const base::Result<net::NameAnswer>& answer,
                                  base::TimePoint now, std::uint64_t random) {
  const bool failed = !answer || answer->addresses.empty();
  Step step{.turned = note(failed, failed ? std::nullopt : answer->ttl, now, random)};
  if (failed) {
    step.outcome = Outcome::Failed;
    return step;
  }
  step.addresses = merged(known, answer->addresses);
  if (step.addresses != known) step.outcome = Outcome::Changed;
  return step;
}

}  // namespace weir::upstream
