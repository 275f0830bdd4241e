#include "app/limiter_reader.hpp"

#include <algorithm>

namespace weir::app {

namespace {

// What a limiter is made of. `room` is the burst or the queue.
struct Numbers {
  limit::Rate rate;
  std::uint64_t room = 1;
  base::Duration max_wait = base::kForever;
};

template <class Bucket>
base::Result<limit::Limiter> as_limiter(base::Result<Bucket> bucket) {
  if (!bucket) return bucket.error();
  return limit::Limiter(std::move(*bucket));
}

base::Result<limit::Limiter> make(Algorithm algorithm, const Numbers& numbers) {
  switch (algorithm) {
    case Algorithm::TokenBucket:
      return as_limiter(limit::TokenBucket::make(numbers.rate, numbers.room));
    case Algorithm::Gcra:
      return as_limiter(limit::Gcra::make(numbers.rate, numbers.room));
    case Algorithm::LeakyBucket:
      break;
  }
  return as_limiter(limit::LeakyBucket::make(numbers.rate, numbers.room, numbers.max_wait));
}

limit::Limiter any_limiter() {
  return *limit::TokenBucket::make({}, 1);
}

void refuse_strangers(const TableReader& table, Algorithm algorithm) {
  const bool queues = algorithm == Algorithm::LeakyBucket;
  if (queues && table.has("burst"))
    table.mistake("burst", "not of leaky_bucket; expected queue, or another algorithm");
  if (!queues && table.has("queue"))
    table.mistake("queue", "only of leaky_bucket; expected burst, or algorithm = \"leaky_bucket\"");
  if (!queues && table.has("max_wait"))
    table.mistake("max_wait", "only of leaky_bucket; expected algorithm = \"leaky_bucket\"");
}

std::uint64_t read_room(const TableReader& table, Algorithm algorithm, const limit::Rate& rate) {
  const std::string_view key = algorithm == Algorithm::LeakyBucket ? "queue" : "burst";
  const auto least = algorithm == Algorithm::TokenBucket ? 1 : 0;
  if (!table.has(key)) return algorithm == Algorithm::Gcra ? 0 : rate.count;
  const auto room = table.whole(key);
  if (room < least) table.mistake(key, "found 0; expected at least 1, or nothing would ever pass");
  return static_cast<std::uint64_t>(std::max<std::int64_t>(room, least));
}

// The share of one among `replicas`. The period is multiplied, not the count divided: no rounding, so that
// the shares add up to the limit exactly. What a bucket or a queue holds is rounded down, but not to none.
Numbers share(const Numbers& whole, Algorithm algorithm, unsigned replicas) {
  Numbers part = whole;
  part.rate.period = whole.rate.period * replicas;
  const std::uint64_t least = algorithm == Algorithm::Gcra ? 0 : std::min<std::uint64_t>(whole.room, 1);
  part.room = std::max(least, whole.room / replicas);
  return part;
}

}  // namespace

Limiters read_limiters(const TableReader& table, Algorithm algorithm, unsigned replicas) {
  refuse_strangers(table, algorithm);
  const auto rate = table.rate("limit");
  if (!rate) return {any_limiter(), std::nullopt};
  Numbers numbers{*rate, read_room(table, algorithm, *rate)};
  if (algorithm == Algorithm::LeakyBucket && table.has("max_wait"))
    numbers.max_wait = table.duration("max_wait");
  auto limiter = make(algorithm, numbers);
  if (!limiter) {
    table.mistake("limit", limiter.error().message);
    return {any_limiter(), std::nullopt};
  }
  if (replicas == 0) return {std::move(*limiter), std::nullopt};
  auto local = make(algorithm, share(numbers, algorithm, replicas));
  if (!local) {
    table.mistake("limit", "its share of one among " + std::to_string(replicas) +
                               " replicas: " + local.error().message);
    return {std::move(*limiter), std::nullopt};
  }
  return {std::move(*limiter), std::move(*local)};
}

}  // namespace weir::app
