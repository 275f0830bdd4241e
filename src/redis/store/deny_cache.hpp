// The states of keys that Redis has refused, so that weir can refuse them without a round trip, as Redis
// would.
//
// One cache for each connection, used by its worker only. Pure: time is an argument. The number of places is
// fixed. In a full set, the entry with the latest answer stays.
//
// The cache keeps the state behind each line of a refusal, not the refusal, and asks the limiter again. So a
// request of lower cost gets its own answer. Retry-After, Remaining and Reset are those that Redis's answer
// would give now. The refusal is right for three reasons.
//  1. A state only moves later: charges add to it, and time is not part of it (src/limit). A limiter that
//     refuses in a state refuses in every later state. So if the known state is refused at an instant, the
//     present state is refused too.
//  2. Redis read its clock between `sent` and `received`. A bill is refused only if it is still refused with
//     the reading at `sent`. The wait counts from a reading at `received`, as in Redis's own answer. So a
//     refusal ends early by a round trip at most (then Redis is asked), never late, and Retry-After is never
//     early. Clocks may run apart by one part in kPace.
//  3. All lines of a bill must be known, so that the longest wait of several refusals is returned. A line
//     that others have charged since then is known as it was.
// Only a refund moves a state earlier. Refunds of this process end what was known before (LastRefunds).
// Nobody reports refunds of other weirs, or a Redis that loses its state. So a state is known for kKnown
// only. After such a refund, a request that Redis would admit may be refused for that long. No request is
// admitted that Redis would refuse. Queues and concurrency are never kept here, because their states move
// earlier all the time. Callers leave out rules that answers settle.
#pragma once

#include "redis/scripts/line_numbers.hpp"

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

  // Long compared to a round trip, so that a flood on a key costs about one trip a second. Short compared to
  // what people wait for after a refund.
  static constexpr std::chrono::milliseconds kKnown{1000};
  // After kFresh, one request in each kRenewal asks Redis again, so that a flood does not ask all at once at
  // the end.
  static constexpr std::chrono::milliseconds kFresh{750};
  static constexpr std::chrono::milliseconds kRenewal{20};
  // This host's clock and Redis's run apart by less than one part in kPace (NTP slews by 1 in 2000).
  static constexpr int kPace = 1024;

  // `refunds` must outlive the cache.
  explicit DenyCache(const LastRefunds& refunds) : refunds_(refunds), entries_(kSets * kWays) {}

  // The times of a bill that Redis refused.
  struct RoundTrip {
    Time sent, received;
    base::TimePoint server_now;  // Redis's clock, read in between
  };
  // Must be called for a bill that Redis refused. `answers`: kAnswerNumbers for each line.
  void remember(std::span<const limit::Charge> bill, std::span<const std::int64_t> answers,
                const RoundTrip& trip) noexcept;

  // Must be called for a bill that Redis charged.
  void forget(std::span<const limit::Charge> bill) noexcept;

  // Returns Redis's time if Redis would refuse the bill now; nullopt if Redis must be asked. Sets the
  // outcomes, which count from that time. Outcome::ahead holds the difference to each line's own clock
  // reading, so the outcomes name the same instants as Redis did.
  [[nodiscard]] std::optional<base::TimePoint> refuses(std::span<const limit::Charge> bill,
                                                       std::span<limit::Outcome> outcomes, Time now) noexcept;

  // Must be called for a new connection, because it may lead to a Redis with other state and another clock.
  void forget_all() noexcept;

 private:
  static constexpr std::size_t kSets = 2048;
  static constexpr std::size_t kWays = 2;  // so that two lines of one bill rarely evict each other

  struct Entry {
    limit::Key key{};
    const limit::Limiter* limiter = nullptr;  // null: the place is free
    limit::Cost cost = 0;
    std::array<std::int64_t, kAnswerNumbers> answer{};
    RoundTrip trip{};
    Time renewed{};  // when the last request was sent to Redis to refresh the entry
  };

  // Returns the index of the first place in the key's set.
  [[nodiscard]] static std::size_t set_of(const limit::Key& key) noexcept { return key.lo % kSets * kWays; }
  [[nodiscard]] const Entry* find(const limit::Charge& line, Time now) noexcept;

  const LastRefunds& refunds_;
  std::vector<Entry> entries_;
};

}  // namespace weir::redis
