// Reads the numbers of a limit from a rule, a tier or an override, and makes a limiter of them.
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
};  // in the order of the choices in the schema

// The settings of a rule that also apply to the limits of its tiers and overrides.
struct Method {
  Algorithm algorithm = Algorithm::TokenBucket;
  bool stepwise = false;                            // used by TokenBucket
  bool has_align = false;                           // the rule has the key `align`, even with a mistake
  limit::FixedWindow::Align align{};                // used by FixedWindow
  std::shared_ptr<const limit::Calendar> calendar;  // the calendar of `align`
  std::optional<std::uint64_t> buckets;             // used by SlidingWindow
};

struct Limiters {
  limit::Limiter limiter;
  // The part of `limiter` that one weir process enforces while Redis is away. Set only if `replicas` is set.
  std::optional<limit::Limiter> local_share{};
  // `limiter` with its limit raised by the setting `soft`; absent without that setting.
  std::optional<limit::Limiter> soft{};
  std::optional<limit::Limiter> soft_share{};  // one weir's part of `soft`
  std::optional<limit::Rate> rate{};           // the value of the setting `limit`, if it is a rate
  std::uint64_t burst_or_queue = 0;            // the value of the setting `burst` or `queue`
};

// Returns a limiter with an arbitrary limit. It serves as a placeholder until the right limiter is read, and
// after a mistake.
[[nodiscard]] limit::Limiter any_limiter();

// Reads the settings algorithm, refill, align, timezone and buckets of a rule.
[[nodiscard]] Method read_method(const TableReader& rule);

// Returns the part of a message that says why Redis cannot keep the state of this method. Returns an empty
// text if Redis can keep it.
[[nodiscard]] std::string not_in_redis(const Method& method);

// Reads the settings limit, burst, queue, max_wait, min, max and soft of `table`. `replicas`: the number of
// weirs among which the limit is divided; 0: do not divide it. `least_burst_or_queue`: the minimum burst or
// queue if `table` itself does not set it. After a mistake, the limiter has arbitrary numbers.
[[nodiscard]] Limiters read_limiters(const TableReader& table, const Method& method, unsigned replicas,
                                     std::uint64_t least_burst_or_queue = 0);
// Returns the setting from which Limiters::burst_or_queue is read: "queue" for a leaky bucket, "burst" for
// the other algorithms.
[[nodiscard]] std::string_view key_of_burst_or_queue(const Method& method) noexcept;

}  // namespace weir::config
