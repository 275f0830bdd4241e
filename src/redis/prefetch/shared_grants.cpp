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

SharedGrants::Stripe& SharedGrants::stripe_of(const limit::Charge& line) const noexcept {
  return stripes_[line.key.hi % kStripes];
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
    sum.crowded += stats.crowded;
  }
  return sum;
}

bool SharedGrants::spend(const limit::Charge& line, Time now, limit::Outcome& outcome) {
  return stripe_of(line).use([&](GrantCache& cache) { return cache.spend(line, now, outcome); });
}

bool SharedGrants::peek(const limit::Charge& line, Time now, limit::Outcome& outcome) {
  return stripe_of(line).use([&](GrantCache& cache) { return cache.peek(line, now, outcome); });
}

std::vector<Refund> SharedGrants::put_back(const limit::Charge& line, const limit::Outcome& outcome) {
  std::vector<Refund> back;
  stripe_of(line).use([&](GrantCache& cache) { cache.put_back(line, outcome, back); });
  return back;
}

void SharedGrants::note_trip(const limit::Charge& line, Time now) {
  stripe_of(line).use([&](GrantCache& cache) { cache.note_trip(line, now); });
}

void SharedGrants::learn(const limit::Charge& line, const limit::Outcome& outcome) {
  stripe_of(line).use([&](GrantCache& cache) { cache.learn(line, outcome); });
}

limit::Cost SharedGrants::wanted(const limit::Charge& line, Time now) {
  return stripe_of(line).use([&](GrantCache& cache) { return cache.wanted(line, now); });
}

std::vector<Refund> SharedGrants::arrived(const limit::Charge& line, const RoundTrip& trip,
                                          const limit::Outcome& outcome) {
  std::vector<Refund> back;
  stripe_of(line).use([&](GrantCache& cache) { cache.arrived(line, trip, outcome, back); });
  return back;
}

void SharedGrants::failed(const limit::Charge& line, Time now) {
  stripe_of(line).use([&](GrantCache& cache) { cache.failed(line, now); });
}

void SharedGrants::forget(const limit::Charge& line) {
  stripe_of(line).use([&](GrantCache& cache) { cache.forget(line); });
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
