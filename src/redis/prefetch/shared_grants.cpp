#include "weir/redis/shared_grants.hpp"

#include "redis/prefetch/grant_cache.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace weir::redis {

namespace {

// With so many stripes, two workers that use different keys rarely wait for the same mutex.
constexpr std::size_t kStripes = 16;

}  // namespace

struct alignas(64) SharedGrants::Stripe {
  std::mutex mutex;
  std::unique_ptr<GrantCache> cache;

  template <class Use>
  auto use(Use use) {
    const std::lock_guard lock(mutex);
    return use(*cache);
  }
};

SharedGrants::SharedGrants(std::size_t keys, base::Duration hold)
    : hold_(hold), stripes_(std::make_unique<Stripe[]>(kStripes)) {
  for (std::size_t i = 0; i < kStripes; ++i)
    stripes_[i].cache = std::make_unique<GrantCache>((keys + kStripes - 1) / kStripes, hold);
}

SharedGrants::~SharedGrants() = default;

SharedGrants::Stripe& SharedGrants::stripe_of(const limit::Charge& charge) const noexcept {
  return stripes_[charge.key.hi % kStripes];
}

GrantStats SharedGrants::stats() const {
  GrantStats sum;
  for (std::size_t i = 0; i < kStripes; ++i) {
    const auto stats = stripes_[i].use([](GrantCache& cache) { return cache.stats(); });
    sum.taken += stats.taken;
    sum.spent += stats.spent;
    sum.put_back += stats.put_back;
    sum.returned += stats.returned;
    sum.lost += stats.lost;
    sum.rejected_keys += stats.rejected_keys;
  }
  return sum;
}

bool SharedGrants::spend(const limit::Charge& charge, Time now, limit::Outcome& outcome) {
  return stripe_of(charge).use([&](GrantCache& cache) { return cache.spend(charge, now, outcome); });
}

bool SharedGrants::peek(const limit::Charge& charge, Time now, limit::Outcome& outcome) {
  return stripe_of(charge).use([&](GrantCache& cache) { return cache.peek(charge, now, outcome); });
}

std::vector<Refund> SharedGrants::put_back(const limit::Charge& charge, const limit::Outcome& outcome) {
  std::vector<Refund> back;
  stripe_of(charge).use([&](GrantCache& cache) { cache.put_back(charge, outcome, back); });
  return back;
}

void SharedGrants::note_trip(const limit::Charge& charge, Time now) {
  stripe_of(charge).use([&](GrantCache& cache) { cache.note_trip(charge, now); });
}

void SharedGrants::learn(const limit::Charge& charge, const limit::Outcome& outcome) {
  stripe_of(charge).use([&](GrantCache& cache) { cache.learn(charge, outcome); });
}

limit::Cost SharedGrants::wanted(const limit::Charge& charge, Time now) {
  return stripe_of(charge).use([&](GrantCache& cache) { return cache.wanted(charge, now); });
}

std::vector<Refund> SharedGrants::arrived(const limit::Charge& charge, const RoundTrip& trip,
                                          const limit::Outcome& outcome) {
  std::vector<Refund> back;
  stripe_of(charge).use([&](GrantCache& cache) { cache.arrived(charge, trip, outcome, back); });
  return back;
}

void SharedGrants::failed(const limit::Charge& charge, Time now) {
  stripe_of(charge).use([&](GrantCache& cache) { cache.failed(charge, now); });
}

void SharedGrants::forget(const limit::Charge& charge) {
  stripe_of(charge).use([&](GrantCache& cache) { cache.forget(charge); });
}

std::vector<Refund> SharedGrants::sweep(Time now, std::size_t most) {
  std::vector<Refund> back;
  for (std::size_t i = 0; i < kStripes; ++i)
    stripes_[i].use([&](GrantCache& cache) { cache.sweep(now, back, most); });
  return back;
}

std::vector<Refund> SharedGrants::give_up(Time now, std::size_t most) {
  std::vector<Refund> back;
  for (std::size_t i = 0; i < kStripes; ++i)
    stripes_[i].use([&](GrantCache& cache) { cache.give_up(now, back, most); });
  return back;
}

}  // namespace weir::redis
