// Reads the numbers of an algorithm in a rule, a tier or an override, and makes a limiter of them.
#pragma once

#include "config/read/table_reader.hpp"

#include "weir/limit/limiter.hpp"

#include <memory>
#include <optional>

namespace weir::config {

enum class Algorithm : std::uint8_t {
  TokenBucket,
  Gcra,
  LeakyBucket,
  FixedWindow,
  SlidingLog,
  SlidingWindow,
  Concurrency,
  AdaptiveConcurrency,
};  // in the order of the schema's choices

// The settings that a rule has once, for its own limit, its tiers and its overrides.
struct Method {
  Algorithm algorithm = Algorithm::TokenBucket;
  bool stepwise = false;                            // for TokenBucket
  limit::FixedWindow::Align align{};                // for FixedWindow
  std::shared_ptr<const limit::Calendar> calendar;  // the calendar of `align`
  std::optional<std::uint64_t> buckets;             // for SlidingWindow
};

struct Limiters {
  limit::Limiter limiter;
  std::optional<limit::Limiter> local_share{};  // one weir's part of the limit; set with `replicas`
  std::optional<limit::Limiter> soft{};         // the limit with the margin of `soft`, if the key is there
  std::optional<limit::Limiter> soft_share{};   // the same for local_share
  std::optional<limit::Rate> rate{};            // the value of `limit`
  std::uint64_t room = 0;                       // the burst or the queue
};

// Reads algorithm, refill, align, timezone and buckets of a rule.
[[nodiscard]] Method read_method(const TableReader& rule);

// Returns the reason why Redis cannot keep such a state, as part of a message. Empty if Redis can.
[[nodiscard]] std::string not_in_redis(const Method& method);

// Reads limit, burst, queue, max_wait, min, max and soft of `table`. `replicas`: the number of weirs among
// which the limit is divided for the local share; 0: no local share. `least_room`: the lowest default of
// burst or queue. After a mistake the limiter has arbitrary numbers.
[[nodiscard]] Limiters read_limiters(const TableReader& table, const Method& method, unsigned replicas,
                                     std::uint64_t least_room = 0);
// Returns "queue" for a leaky bucket and "burst" for the others.
[[nodiscard]] std::string_view key_of_room(const Method& method) noexcept;

}  // namespace weir::config
