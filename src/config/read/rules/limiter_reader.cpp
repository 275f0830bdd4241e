#include "config/read/rules/limiter_reader.hpp"

#include "config/errors/fitting_value.hpp"
#include "config/read/calendar.hpp"
#include "config/read/percentage.hpp"

#include <algorithm>
#include <array>

namespace weir::config {

namespace {

using Align = limit::FixedWindow::Align;

constexpr std::array<std::string_view, 8> kWords = {
    "token_bucket", "gcra",           "leaky_bucket", "fixed_window",
    "sliding_log",  "sliding_window", "concurrency",  "adaptive_concurrency"};

std::string_view word_of(Algorithm algorithm) {
  return kWords[static_cast<std::size_t>(algorithm)];
}

// A setting that only some algorithms use.
struct Special {
  std::string_view key;
  std::initializer_list<Algorithm> owners;
};

const std::array<Special, 10>& specials() {
  using enum Algorithm;
  static const std::array<Special, 10> kSpecials = {
      {{"burst", {TokenBucket, Gcra}},
       {"queue", {LeakyBucket}},
       {"max_wait", {LeakyBucket}},
       {"refill", {TokenBucket}},
       {"align", {FixedWindow}},
       {"timezone", {FixedWindow}},
       {"buckets", {SlidingWindow}},
       {"min", {AdaptiveConcurrency}},
       {"max", {AdaptiveConcurrency}},
       {"limit", {TokenBucket, Gcra, LeakyBucket, FixedWindow, SlidingLog, SlidingWindow, Concurrency}}}};
  return kSpecials;
}

bool owns(const Special& special, Algorithm algorithm) {
  return std::ranges::find(special.owners, algorithm) != special.owners.end();
}

// Returns the names of the settings that the algorithm uses instead of `key`. Returns an empty text if there
// are none.
std::string instead_of(std::string_view key, Algorithm algorithm) {
  if (algorithm == Algorithm::AdaptiveConcurrency) return "min and max";
  if (key == "burst") return algorithm == Algorithm::LeakyBucket ? "queue" : "limit alone";
  if (key == "queue" && (algorithm == Algorithm::TokenBucket || algorithm == Algorithm::Gcra)) return "burst";
  return {};
}

void refuse_strangers(const TableReader& table, Algorithm algorithm) {
  for (const auto& special : specials()) {
    if (!table.knows(special.key) || !table.has(special.key) || owns(special, algorithm)) continue;
    const auto better = instead_of(special.key, algorithm);
    if (special.owners.size() > 1) {
      table.mistake(special.key, "not used by " + std::string(word_of(algorithm)) + "; expected " + better +
                                     ", or another algorithm");
      continue;
    }
    const auto owner = std::string(word_of(*special.owners.begin()));
    table.mistake(special.key, "only used by " + owner + "; expected " + better +
                                   (better.empty() ? "" : ", or ") + "algorithm = \"" + owner + "\"");
  }
}

// The settings of a limit as numbers. make() turns them into a limiter. `burst_or_queue`: the value of
// `burst` or `queue`.
struct Numbers {
  limit::Rate rate;
  std::uint64_t burst_or_queue = 1;
  base::Duration max_wait = base::kForever;
  std::uint64_t least = 1, most = 1;  // bounds of the number of concurrent requests
};

template <class Made>
base::Result<limit::Limiter> as_limiter(base::Result<Made> made) {
  if (!made) return made.error();
  return limit::Limiter(std::move(*made));
}

base::Result<limit::Limiter> make(const Method& method, const Numbers& numbers) {
  switch (method.algorithm) {
    case Algorithm::TokenBucket:
      if (method.stepwise)
        return as_limiter(limit::SteppedBucket::make(numbers.rate, numbers.burst_or_queue));
      return as_limiter(limit::TokenBucket::make(numbers.rate, numbers.burst_or_queue));
    case Algorithm::Gcra:
      return as_limiter(limit::Gcra::make(numbers.rate, numbers.burst_or_queue));
    case Algorithm::LeakyBucket:
      return as_limiter(limit::LeakyBucket::make(numbers.rate, numbers.burst_or_queue, numbers.max_wait));
    case Algorithm::FixedWindow:
      if (method.calendar)
        return as_limiter(limit::FixedWindow::make(numbers.rate.count, method.align, method.calendar));
      return as_limiter(limit::FixedWindow::make(numbers.rate));
    case Algorithm::SlidingLog:
      return as_limiter(limit::SlidingLog::make(numbers.rate));
    case Algorithm::SlidingWindow:
      if (method.buckets) return as_limiter(limit::SlidingLog::make(numbers.rate, *method.buckets));
      return as_limiter(limit::SlidingWindow::make(numbers.rate));
    case Algorithm::Concurrency:
      return as_limiter(limit::Concurrency::make(numbers.most));
    case Algorithm::AdaptiveConcurrency:
      break;
  }
  return as_limiter(limit::AdaptiveConcurrency::make(numbers.least, numbers.most));
}

std::uint64_t read_burst_or_queue(const TableReader& table, Algorithm algorithm, const limit::Rate& rate) {
  const std::string_view key = algorithm == Algorithm::LeakyBucket ? "queue" : "burst";
  const auto least = algorithm == Algorithm::TokenBucket ? 1 : 0;
  if (!table.has(key)) return algorithm == Algorithm::Gcra ? 0 : rate.count;
  const auto burst_or_queue = table.whole(key);
  if (burst_or_queue < least) table.mistake(key, "found 0, which admits no request; expected at least 1");
  return static_cast<std::uint64_t>(std::max<std::int64_t>(burst_or_queue, least));
}

// The words of `align`, in the order of FixedWindow::Align.
constexpr std::array<std::string_view, 4> kAlignWords{"", "day", "month", "week"};

// Reads `limit` for windows of a calendar: "100/day" for days, "100/week" for weeks, "100/month" for months.
std::optional<limit::Rate> read_calendar_rate(const TableReader& table, const Node& node, Align align) {
  const auto text = as_plain_text(node);
  const auto unit = kAlignWords[static_cast<std::size_t>(align)];
  const auto slash = std::min(text.find('/'), text.size());
  const auto count = text.substr(0, slash);
  auto rate = limit::parse_rate(count + "/day");
  if (text.substr(slash) != "/" + std::string(unit)) {
    table.mistake("limit", "found " + as_toml(node) + "; expected " +
                               in_quotes((rate ? count : "COUNT") + "/" + std::string(unit)) +
                               ", because of align = " + in_quotes(unit));
    return std::nullopt;
  }
  if (rate) return *rate;
  table.mistake("limit", rate.error().message);
  return std::nullopt;
}

// Returns roughly how many days a "week" or a "month" has. Returns 0 for any other text.
unsigned days_of(std::string_view unit) {
  if (unit == "week") return 7;
  return unit == "month" ? 30 : 0;
}

// Reads `limit` as a rate. Rates per week or month need `align`. If `align` itself has a mistake, reports
// only that mistake.
std::optional<limit::Rate> read_rate(const TableReader& table, const Method& method) {
  const auto* node = table.node("limit");
  if (node != nullptr && method.calendar) return read_calendar_rate(table, *node, method.align);
  if (node == nullptr || node->text() == nullptr) return table.rate("limit");
  const std::string_view text = *node->text();
  const auto slash = std::min(text.find('/'), text.size());
  const std::string unit(text.substr(std::min(slash + 1, text.size())));
  const auto better = std::string(text.substr(0, slash)) + "/" + std::to_string(days_of(unit)) + "days";
  if (days_of(unit) == 0 || !limit::parse_rate(better)) return table.rate("limit");
  if (!method.has_align)
    table.mistake("limit", "found " + in_quotes(text) + "; write limit = " + in_quotes(better) +
                               ", or set algorithm = \"fixed_window\" and align = " + in_quotes(unit) +
                               " in the rule");
  return std::nullopt;
}

std::optional<Numbers> read_numbers(const TableReader& table, const Method& method) {
  if (method.algorithm == Algorithm::AdaptiveConcurrency) {
    for (const std::string_view key : {"min", "max"})
      if (!table.mentions(key))
        table.missing(key, "min and max, the lowest and highest limit of requests in flight");
    if (!table.has("min") || !table.has("max")) return std::nullopt;
    return Numbers{.rate = {},
                   .least = static_cast<std::uint64_t>(table.whole("min")),
                   .most = static_cast<std::uint64_t>(table.whole("max"))};
  }
  const bool counts = method.algorithm == Algorithm::Concurrency;
  if (!table.mentions("limit"))
    table.missing("limit", counts ? "a whole number such as 10" : "a rate such as \"10/s\"");
  if (!table.has("limit")) return std::nullopt;
  if (counts) {
    const auto most = table.count("limit");
    if (!most) return std::nullopt;
    return Numbers{.rate = {}, .most = *most};
  }
  const auto rate = read_rate(table, method);
  if (!rate) return std::nullopt;
  Numbers numbers{.rate = *rate};
  if (method.algorithm <= Algorithm::LeakyBucket)
    numbers.burst_or_queue = read_burst_or_queue(table, method.algorithm, *rate);
  if (method.algorithm == Algorithm::LeakyBucket && table.has("max_wait"))
    numbers.max_wait = table.duration("max_wait");
  return numbers;
}

// Returns the part of the limit `whole` that each of `replicas` weir processes enforces. For buckets and
// queues, the rate keeps its count and gets a longer period, so that the parts add up exactly. All other
// numbers are divided and rounded down. They stay at least 1, except the burst of gcra, which may become 0.
Numbers share(const Numbers& whole, Algorithm algorithm, unsigned replicas) {
  const auto part_of = [&](std::uint64_t quota, std::uint64_t least) {
    return std::max(std::min(quota, least), quota / replicas);
  };
  Numbers part = whole;
  if (algorithm <= Algorithm::LeakyBucket) {
    part.rate.period = whole.rate.period * replicas;
    part.burst_or_queue = part_of(whole.burst_or_queue, algorithm == Algorithm::Gcra ? 0 : 1);
  } else {
    part.rate.count = part_of(whole.rate.count, 1);
    part.most = part_of(whole.most, 1);
  }
  return part;
}

// Returns the numbers with a limit that is higher by `percent` percent. A bucket keeps its rate and gets a
// larger burst or queue. A window, a log or a concurrency limit gets a higher count.
Numbers widened(const Numbers& numbers, Algorithm algorithm, std::uint64_t percent) {
  Numbers wide = numbers;
  const auto more = [&](std::uint64_t quota) { return quota * percent / 100; };
  switch (algorithm) {
    case Algorithm::TokenBucket:
    case Algorithm::LeakyBucket:
      wide.burst_or_queue += more(numbers.burst_or_queue);
      break;
    case Algorithm::Gcra:
      wide.burst_or_queue += more(numbers.burst_or_queue + 1);
      break;
    case Algorithm::FixedWindow:
    case Algorithm::SlidingLog:
    case Algorithm::SlidingWindow:
      wide.rate.count += more(numbers.rate.count);
      break;
    case Algorithm::Concurrency:
    case Algorithm::AdaptiveConcurrency:
      wide.most += more(numbers.most);
      break;
  }
  return wide;
}

void read_soft(const TableReader& table, const Method& method, const Numbers& numbers, unsigned replicas,
               Limiters& limiters) {
  const auto percent = read_percentage(table, "soft", {.least = 1});
  if (!percent) return;
  if (method.algorithm == Algorithm::AdaptiveConcurrency)
    return table.mistake(
        "soft",
        "adaptive_concurrency adjusts its limit itself, so it has no soft limit; write a higher max instead");
  const auto wide = widened(numbers, method.algorithm, *percent);
  auto soft = make(method, wide);
  if (!soft) return table.mistake("soft", soft.error().message);
  const auto quota = limit::quota(limiters.limiter);
  if (limit::quota(*soft) == quota)
    return table.mistake("soft", "found " + in_quotes(table.text("soft")) + " of " + std::to_string(quota) +
                                     ", which is less than one request; expected a larger share");
  limiters.soft = std::move(*soft);
  if (replicas == 0) return;
  if (auto local = make(method, share(wide, method.algorithm, replicas)))
    limiters.soft_share = std::move(*local);
}

Limiters completed(const TableReader& table, const Method& method, const Numbers& numbers, unsigned replicas,
                   Limiters limiters) {
  limiters.rate = numbers.rate;
  if (method.algorithm <= Algorithm::LeakyBucket) limiters.burst_or_queue = numbers.burst_or_queue;
  if (table.has("soft")) read_soft(table, method, numbers, replicas, limiters);
  return limiters;
}

void read_calendar(const TableReader& rule, Method& method) {
  if (!rule.has("align")) {
    if (rule.has("timezone"))
      rule.mistake("timezone",
                   "found without a calendar; expected align = \"day\", \"week\" or \"month\" beside it");
    return;
  }
  auto calendar = load_calendar(rule.has("timezone") ? rule.text("timezone") : "UTC");
  if (!calendar) {
    rule.mistake("timezone", calendar.error().message);
    return;
  }
  const auto* const word = std::find(kAlignWords.begin(), kAlignWords.end(), rule.text("align"));
  method.align = static_cast<Align>(word - kAlignWords.begin());
  method.calendar = std::move(*calendar);
}

}  // namespace

limit::Limiter any_limiter() {
  return *limit::TokenBucket::make({}, 1);
}

Method read_method(const TableReader& rule) {
  Method method;
  method.algorithm = rule.choice<Algorithm>("algorithm");
  method.stepwise = method.algorithm == Algorithm::TokenBucket && rule.text("refill") == "stepwise";
  method.has_align = rule.mentions("align");
  if (method.algorithm == Algorithm::FixedWindow) read_calendar(rule, method);
  if (rule.has("buckets")) method.buckets = static_cast<std::uint64_t>(rule.whole("buckets"));
  return method;
}

std::string not_in_redis(const Method& method) {
  if (method.algorithm == Algorithm::AdaptiveConcurrency)
    return "adaptive_concurrency cannot be kept in Redis, because it measures the requests of this instance; "
           "expected store = \"memory\"";
  return {};
}

std::string_view key_of_burst_or_queue(const Method& method) noexcept {
  return method.algorithm == Algorithm::LeakyBucket ? "queue" : "burst";
}

Limiters read_limiters(const TableReader& table, const Method& method, unsigned replicas,
                       std::uint64_t least_burst_or_queue) {
  refuse_strangers(table, method.algorithm);
  auto numbers = read_numbers(table, method);
  if (!numbers) return {any_limiter(), std::nullopt};
  if (!table.has(key_of_burst_or_queue(method)))
    numbers->burst_or_queue = std::max(numbers->burst_or_queue, least_burst_or_queue);
  const auto* blamed = method.algorithm == Algorithm::AdaptiveConcurrency ? "max" : "limit";
  auto limiter = make(method, *numbers);
  if (!limiter) {
    table.mistake(blamed, limiter.error().message);
    return {any_limiter(), std::nullopt};
  }
  if (replicas == 0 || !not_in_redis(method).empty())
    return completed(table, method, *numbers, 0, {std::move(*limiter), std::nullopt});
  auto local = make(method, share(*numbers, method.algorithm, replicas));
  if (!local) {
    table.mistake(blamed, "one of " + std::to_string(replicas) +
                              " replicas gets no valid share of it: " + local.error().message);
    return {std::move(*limiter), std::nullopt};
  }
  return completed(table, method, *numbers, replicas, {std::move(*limiter), std::move(*local)});
}

}  // namespace weir::config
