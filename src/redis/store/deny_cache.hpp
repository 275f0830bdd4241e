// What Redis said of keys when it refused, so that they can be refused here, without a trip, as it would.
//
// One a connection, touched by its worker alone. Pure: time is an argument. A fixed number of places; of keys
// that meet in one place the one that was heard of last stays.
//
// Kept is not the refusal but the state of each line behind it, and the limiter is asked again of that state.
// So a cheaper request is told what it would be told, and Retry-After, Remaining and Reset are those that
// Redis's answer would come to. Why such a refusal is right:
//  1. A state only moves later (src/limit: charges add to it, time is not part of it), and what a limiter
//     refuses of a state it refuses of every later one. So what the state that was told refuses at an
//     instant, the state of that instant refuses.
//  2. The instant is one by Redis's clock, which was read between `sent` and `received`. It is refused only
//     what is still refused if it was read at `sent`, and the wait that is told counts from its having been
//     read at `received`, as that of Redis's own answer did: a refusal ends early by at most that round trip
//     (then Redis is asked), never late, and Retry-After is never early. Clocks that run apart by one part in
//     kPace are allowed for.
//  3. All lines of a bill have to be known, so that the longest wait of several refusals is told. Where one
//     was charged since by others, it is known as it was.
// What moves a state earlier is a refund. Those of this process end what was known before (LastRefunds). Of
// those of other weirs, and of a Redis that loses what it knew, nobody tells us: therefore a state is known
// for kKnown alone, and for so long at most, after such a refund, is a request refused that Redis would now
// admit. None is ever admitted that it would refuse. Limiters whose charges come back as a matter of course
// are never kept here: queues and concurrency; and whoever asks leaves out rules that answers settle.
#pragma once

#include "redis/scripts/line.hpp"

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

  // Long against a round trip, so that a flood on a key costs hardly more than a trip a second; short against
  // what people wait for when something was given back.
  static constexpr std::chrono::milliseconds kKnown{1000};
  // From so old on one request in each kRenewal asks anew, so that not all of a flood ask at once in the end.
  static constexpr std::chrono::milliseconds kFresh{750};
  static constexpr std::chrono::milliseconds kRenewal{20};
  // Clocks of this host and of Redis's run apart by less than one part in so many (NTP slews by 1 in 2000).
  static constexpr int kPace = 1024;

  // `refunds` outlives the cache.
  explicit DenyCache(const LastRefunds& refunds) : refunds_(refunds), places_(kSets * kWays) {}

  // Of a bill that Redis refused.
  struct Trip {
    Time sent, received;
    base::TimePoint server_now;  // Redis's clock in between
  };
  // `answers`: kAnswerNumbers for each line.
  void remember(std::span<const limit::Charge> bill, std::span<const std::int64_t> answers,
                const Trip& trip) noexcept;

  // Of a bill that Redis charged.
  void forget(std::span<const limit::Charge> bill) noexcept;

  // Returns Redis's time if Redis would refuse the bill then. The outcomes are set: they count from that
  // time, each from the reading of its own line (Outcome::ahead), so that they name the instants that Redis
  // named. Nullopt: it is to be asked.
  [[nodiscard]] std::optional<base::TimePoint> refuses(std::span<const limit::Charge> bill,
                                                       std::span<limit::Outcome> outcomes, Time now) noexcept;

  // For a new connection: it may lead to a Redis with other state and another clock.
  void forget_all() noexcept;

 private:
  static constexpr std::size_t kSets = 2048;
  static constexpr std::size_t kWays = 2;  // so that two lines of one bill hardly ever keep each other out

  struct Place {
    limit::Key key{};
    const limit::Limiter* limiter = nullptr;  // null: nobody's
    limit::Cost cost = 0;
    std::array<std::int64_t, kAnswerNumbers> answer{};
    Trip trip{};
    Time renewed{};  // when somebody was last sent to ask anew
  };

  // Where the set of a key begins.
  [[nodiscard]] static std::size_t set_of(const limit::Key& key) noexcept { return key.lo % kSets * kWays; }
  [[nodiscard]] const Place* find(const limit::Charge& line, Time now) noexcept;

  const LastRefunds& refunds_;
  std::vector<Place> places_;
};

}  // namespace weir::redis
