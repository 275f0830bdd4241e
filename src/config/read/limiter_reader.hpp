// Reads the numbers of a limit in a rule, a tier or an override, and makes a limiter from them.
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

// Settings that a rule has only once. They apply to the rule's own limit and to those of its tiers and
// overrides.
struct Method {
  Algorithm algorithm = Algorithm::TokenBucket;
  bool stepwise = false;                            // for TokenBucket
  limit::FixedWindow::Align align{};                // for FixedWindow
  std::shared_ptr<const limit::Calendar> calendar;  // the calendar of `align`
  std::optional<std::uint64_t> buckets;             // for SlidingWindow
};

struct Limiters {
  limit::Limiter limiter;
  // One weir's part of `limiter`, for times without Redis; set with `replicas`.
  std::optional<limit::Limiter> local_share{};
  // `limiter` with the margin of the key `soft`; absent without that key
  std::optional<limit::Limiter> soft{};
  std::optional<limit::Limiter> soft_share{};  // one weir's part of `soft`
  std::optional<limit::Rate> rate{};           // the value of the key `limit`, if it is a rate
  std::uint64_t room = 0;                      // the value of `burst` or `queue`
};

// Reads the keys algorithm, refill, align, timezone and buckets of a rule.
[[nodiscard]] Method read_method(const TableReader& rule);

// Returns, as a part of a message, why Redis cannot keep the state of this method. Empty if Redis can.
[[nodiscard]] std::string not_in_redis(const Method& method);

// Reads the keys limit, burst, queue, max_wait, min, max and soft of `table`. `replicas`: the number of weirs
// among which the limit is divided; 0: no local share. `least_room`: the default of burst or queue is at
// least this. After a mistake, the limiter has arbitrary numbers.
[[nodiscard]] Limiters read_limiters(const TableReader& table, const Method& method, unsigned replicas,
                                     std::uint64_t least_room = 0);
// Returns the key that sets Limiters::room: "queue" for a leaky bucket, "burst" for the other algorithms.
[[nodiscard]] std::string_view key_of_room(const Method& method) noexcept;

}  // namespace weir::config
