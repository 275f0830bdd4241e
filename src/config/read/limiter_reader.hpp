// The numbers of an algorithm, as a rule, a tier or an override gives them, made into a limiter.
#pragma once

#include "config/read/table_reader.hpp"

#include "weir/limit/limiter.hpp"

#include <memory>
#include <optional>

namespace weir::app {

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

// What a rule says once, for itself, its tiers and its overrides: how they count.
struct Method {
  Algorithm algorithm = Algorithm::TokenBucket;
  bool stepwise = false;                            // of TokenBucket
  limit::FixedWindow::Align align{};                // of FixedWindow
  std::shared_ptr<const limit::Calendar> calendar;  // by which it is aligned
  std::optional<std::uint64_t> buckets;             // of SlidingWindow
};

struct Limiters {
  limit::Limiter limiter;
  std::optional<limit::Limiter> local_share{};  // where `replicas` was asked for
  std::optional<limit::Limiter> soft{};         // with the margin of `soft`, where that is given
  std::optional<limit::Limiter> soft_share{};   // likewise of local_share
  std::optional<limit::Rate> rate{};            // that `limit` says
  std::uint64_t room = 0;                       // the burst or the queue
};

// Reads algorithm, refill, align, timezone and buckets of a rule.
[[nodiscard]] Method read_method(const TableReader& rule);

// Why Redis cannot keep its state, as a mistake says it; empty where it can.
[[nodiscard]] std::string not_in_redis(const Method& method);

// Reads limit, burst, queue, max_wait, min, max and soft of `table`. `replicas`: 0, or the number of weirs
// among which the limit is divided for the local share. `least_room`: of a burst or queue that is not said.
// After a mistake the limiter is some limiter.
[[nodiscard]] Limiters read_limiters(const TableReader& table, const Method& method, unsigned replicas,
                                     std::uint64_t least_room = 0);
// "queue" of a leaky bucket, "burst" of others.
[[nodiscard]] std::string_view key_of_room(const Method& method) noexcept;

}  // namespace weir::app
