// States of keys that Redis has refused. With these states weir can refuse further requests as Redis would,
// without a round trip.
//
// Each connection has its own cache; in a cluster, the connections of one worker share one. Only that worker
// uses the cache. Pure: time is an argument. The number of entries is fixed. If a set of entries is full, a
// new state replaces the oldest one.
//
// A bill is the list of charges of one request. For each charge of a refused bill, the cache stores the state
// of the key, not the refusal, and evaluates the limiter again. So a request of lower cost gets its own
// answer. Retry-After, Remaining and Reset are those that Redis would return now. A refusal from the cache is
// right for three reasons.
//  1. A state does not contain the time (src/limit), and charges only add to it. A state of the key with more
//     charges is called later. A limiter that refuses in a state also refuses in every later state. So if
//     the limiter refuses in the cached state now, it refuses in the present state in Redis too.
//  2. Redis read its clock at an unknown instant between `sent` and `received`, so the cache knows Redis's
//     present time only up to one round trip. The cache refuses only if the limiter refuses even at the
//     latest possible time. So the cache stops refusing up to one round trip too early (weir then asks
//     Redis), but never too late. Retry-After is computed from the earliest possible time, so it is never too
//     short. The two clocks may drift apart by one part in kPace.
//  3. The cache refuses only if it has the states for all charges of the bill. So it can return the longest
//     wait of all charges that are refused. Exception: the wait may be too short if other requests have
//     charged one of the keys since its state was cached.
// A limiter's refusal is a violation if the rule has a penalty, and Redis must count it. So for such a rule
// the cache refuses only while a penalty runs.
//
// Only a refund makes a state earlier. A refund by this process makes older cached states unusable
// (LastRefunds). weir does not notice refunds by other weirs, or the loss of Redis's data. After one of
// these, the cache may refuse a request that Redis would admit, but not for longer than kKnown, because the
// cache uses no older state.
// The cache never admits a request. States of queues and of concurrency limits are not cached, because they
// often become earlier. If a rule's cost depends on the response, callers may use only refusals by a penalty.
#pragma once

#include "redis/scripts/charge_numbers.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/redis/last_refunds.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::redis {

class DenyCache {
 public:
  using Time = LastRefunds::Time;

  // The cache uses a state for this long. So in a flood of requests for one key, weir needs only about one
  // round trip in this time. After a refund by another weir, a stale state may refuse a client for this long.
  static constexpr std::chrono::milliseconds kKnown{1000};
  // A state older than kFresh is renewed: one request in each period of kRenewal goes to Redis, and the cache
  // still answers the others. Otherwise the state would get too old, and all requests of a flood would go to
  // Redis at once.
  static constexpr std::chrono::milliseconds kFresh{750};
  static constexpr std::chrono::milliseconds kRenewal{20};
  // The clocks of this host and of Redis drift apart by less than one part in kPace (NTP slews by 1 in 2000).
  static constexpr int kPace = 1024;

  // `refunds` must outlive the cache.
  explicit DenyCache(const LastRefunds& refunds) : refunds_(refunds), entries_(kSets * kWays) {}

  // The times at which a refused bill was sent and answered.
  struct RoundTrip {
    Time sent, received;
    base::TimePoint server_now;  // Redis's clock, which Redis read between `sent` and `received`
  };
  // Must be called for a bill (the charges of one request) that Redis refused. `answers`: kAnswerNumbers
  // numbers for each script line of the bill.
  void remember(std::span<const limit::Charge> bill, std::span<const std::int64_t> answers,
                const RoundTrip& trip) noexcept;

  // Removes the states of all keys in the bill (the charges of one request). Must be called for a bill that
  // Redis charged.
  void forget(std::span<const limit::Charge> bill) noexcept;

  // Returns Redis's time if Redis would refuse the bill now. Returns nullopt if Redis must be asked. Sets the
  // outcomes; the times in them refer to the returned time.
  //
  // Each charge has its own estimate of Redis's time. Outcome::ahead is this estimate minus the returned
  // time.
  [[nodiscard]] std::optional<base::TimePoint> refuses(std::span<const limit::Charge> bill,
                                                       std::span<limit::Outcome> outcomes, Time now) noexcept;

  // Removes all states. Must be called for a new connection, because the server may have other states and
  // another clock than the previous server.
  void forget_all() noexcept;

 private:
  static constexpr std::size_t kSets = 2048;
  // The number of entries in a set. With two entries, two charges of one request rarely evict each other.
  static constexpr std::size_t kWays = 2;

  struct Entry {
    limit::Key key{};
    const limit::Limiter* limiter = nullptr;  // null: the entry is free
    limit::Cost cost = 0;
    std::array<std::int64_t, kAnswerNumbers> answer{};
    base::TimePoint penalty_end{};  // the end of the key's last penalty; the epoch if none ran
    RoundTrip trip{};
    Time renewed{};  // when a request was last sent to Redis to refresh this entry
  };

  // Returns the index of the first entry in the key's set.
  [[nodiscard]] static std::size_t set_of(const limit::Key& key) noexcept { return key.lo % kSets * kWays; }
  [[nodiscard]] const Entry* find(const limit::Charge& charge, Time now) noexcept;

  const LastRefunds& refunds_;
  std::vector<Entry> entries_;
};

}  // namespace weir::redis
