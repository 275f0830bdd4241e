#include "app/limiter_reader.hpp"

#include <algorithm>
#include <charconv>

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

// "10%": how much more of the quota; 0 after a mistake.
std::uint64_t read_percent(const TableReader& table, std::string_view key) {
  const auto text = table.text(key);
  std::uint64_t percent = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool good =
      parsed.ec == std::errc{} && std::string_view(parsed.ptr) == "%" && percent >= 1 && percent <= 100;
  if (good) return percent;
  table.mistake(key, "found " + in_quotes(text) + "; expected a share from \"1%\" to \"100%\"");
  return 0;
}

// What the numbers are with a margin: the quota is so much greater, the rate stays.
Numbers widened(const Numbers& numbers, Algorithm algorithm, std::uint64_t percent) {
  Numbers wide = numbers;
  const std::uint64_t quota = numbers.room + (algorithm == Algorithm::Gcra ? 1 : 0);
  wide.room += quota * percent / 100;
  return wide;
}

void read_soft(const TableReader& table, Algorithm algorithm, const Numbers& numbers, unsigned replicas,
               Limiters& limiters) {
  const auto percent = read_percent(table, "soft");
  if (percent == 0) return;
  const auto wide = widened(numbers, algorithm, percent);
  auto soft = make(algorithm, wide);
  if (!soft) return table.mistake("soft", soft.error().message);
  const auto quota = limit::quota(limiters.limiter);
  if (limit::quota(*soft) == quota)
    return table.mistake("soft", "found " + in_quotes(table.text("soft")) + " of " + std::to_string(quota) +
                                     ", which is less than one request; expected a larger share");
  limiters.soft = std::move(*soft);
  if (replicas == 0) return;
  if (auto local = make(algorithm, share(wide, algorithm, replicas))) limiters.soft_share = std::move(*local);
}

Limiters completed(const TableReader& table, Algorithm algorithm, const Numbers& numbers, unsigned replicas,
                   Limiters limiters) {
  limiters.rate = numbers.rate;
  if (table.has("soft")) read_soft(table, algorithm, numbers, replicas, limiters);
  return limiters;
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
  if (replicas == 0) return completed(table, algorithm, numbers, 0, {std::move(*limiter)});
  auto local = make(algorithm, share(numbers, algorithm, replicas));
  if (!local) {
    table.mistake("limit", "its share of one among " + std::to_string(replicas) +
                               " replicas: " + local.error().message);
    return {std::move(*limiter), std::nullopt};
  }
  return completed(table, algorithm, numbers, replicas, {std::move(*limiter), std::move(*local)});
}

}  // namespace weir::app
