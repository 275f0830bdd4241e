#include "weir/redis/unit_leases.hpp"

#include "redis/prefetch/stock.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace weir::redis {

namespace {

// Enough stripes that workers with different keys rarely wait for each other.
constexpr std::size_t kStripes = 16;

}  // namespace

struct alignas(64) UnitLeases::Stripe {
  std::mutex mutex;
  std::unique_ptr<Stock> stock;

  template <class Use>
  auto use(Use use) {
    const std::lock_guard lock(mutex);
    return use(*stock);
  }
};

UnitLeases::UnitLeases(std::size_t keys, base::Duration hold)
    : hold_(hold), stripes_(std::make_unique<Stripe[]>(kStripes)) {
  for (std::size_t i = 0; i < kStripes; ++i)
    stripes_[i].stock = std::make_unique<Stock>((keys + kStripes - 1) / kStripes, hold);
}

UnitLeases::~UnitLeases() = default;

UnitLeases::Stripe& UnitLeases::stripe_of(const limit::Charge& line) const noexcept {
  return stripes_[line.key.hi % kStripes];
}

LeaseStats UnitLeases::stats() const {
  LeaseStats sum;
  for (std::size_t i = 0; i < kStripes; ++i) {
    const auto stats = stripes_[i].use([](Stock& stock) { return stock.stats(); });
    sum.taken += stats.taken;
    sum.spent += stats.spent;
    sum.put_back += stats.put_back;
    sum.returned += stats.returned;
    sum.lost += stats.lost;
    sum.crowded += stats.crowded;
  }
  return sum;
}

bool UnitLeases::spend(const limit::Charge& line, Time now, limit::Outcome& outcome) {
  return stripe_of(line).use([&](Stock& stock) { return stock.spend(line, now, outcome); });
}

bool UnitLeases::peek(const limit::Charge& line, Time now, limit::Outcome& outcome) {
  return stripe_of(line).use([&](Stock& stock) { return stock.peek(line, now, outcome); });
}

std::vector<Refund> UnitLeases::put_back(const limit::Charge& line, const limit::Outcome& outcome) {
  std::vector<Refund> back;
  stripe_of(line).use([&](Stock& stock) { stock.put_back(line, outcome, back); });
  return back;
}

void UnitLeases::note_trip(const limit::Charge& line, Time now) {
  stripe_of(line).use([&](Stock& stock) { stock.note_trip(line, now); });
}

void UnitLeases::learn(const limit::Charge& line, const limit::Outcome& outcome) {
  stripe_of(line).use([&](Stock& stock) { stock.learn(line, outcome); });
}

limit::Cost UnitLeases::wanted(const limit::Charge& line, Time now) {
  return stripe_of(line).use([&](Stock& stock) { return stock.wanted(line, now); });
}

std::vector<Refund> UnitLeases::arrived(const limit::Charge& line, const Trip& trip,
                                        const limit::Outcome& outcome) {
  std::vector<Refund> back;
  stripe_of(line).use([&](Stock& stock) { stock.arrived(line, trip, outcome, back); });
  return back;
}

void UnitLeases::failed(const limit::Charge& line, Time now) {
  stripe_of(line).use([&](Stock& stock) { stock.failed(line, now); });
}

void UnitLeases::forget(const limit::Charge& line) {
  stripe_of(line).use([&](Stock& stock) { stock.forget(line); });
}

std::vector<Refund> UnitLeases::sweep(Time now, std::size_t most) {
  std::vector<Refund> back;
  for (std::size_t i = 0; i < kStripes; ++i)
    stripes_[i].use([&](Stock& stock) { stock.sweep(now, back, most); });
  return back;
}

std::vector<Refund> UnitLeases::give_up(Time now, std::size_t most) {
  std::vector<Refund> back;
  for (std::size_t i = 0; i < kStripes; ++i)
    stripes_[i].use([&](Stock& stock) { stock.give_up(now, back, most); });
  return back;
}

}  // namespace weir::redis
