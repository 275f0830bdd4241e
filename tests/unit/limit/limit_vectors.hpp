// Requests and the decisions that each algorithm must make about them. The decisions were computed by hand
// from the definitions in docs/limiters.md. Tests compare these decisions with those of the limiters, of
// Redis, of the proxy, and of weir's answers to questions.
//
// Each vector begins on Monday, 1 January 2024, 00:00 UTC. At that time, its clients have used nothing. The
// same request some seconds later would get the same decision, with shorter times. So a test may use a clock
// that runs on between two requests.
#pragma once

#include "unit/limit/traffic.hpp"

#include <memory>
#include <vector>

namespace weir::limit {

inline constexpr TimePoint kVectorsBegin{std::chrono::seconds{1'704'067'200}};

struct ExpectedDecision {
  bool allowed;
  Cost remaining;
  Duration retry_after;  // kForever: never
  Duration reset_after;  // until the limit is completely unused
};

struct VectorRequest {
  Duration at;  // since the beginning
  const char* client;
  Cost cost;
  ExpectedDecision expected;
};

struct LimitVector {
  const char* name;
  Limiter limiter;
  std::vector<VectorRequest> requests;  // in the order of their times
};

inline ExpectedDecision admitted(Cost remaining, Duration reset_after) {
  return {true, remaining, Duration{0}, reset_after};
}
inline ExpectedDecision refused(Cost remaining, Duration retry_after, Duration reset_after) {
  return {false, remaining, retry_after, reset_after};
}
// The cost is more than the limit can ever admit.
inline ExpectedDecision refused_for_good(Cost remaining, Duration reset_after) {
  return {false, remaining, base::kForever, reset_after};
}

// Windows in a zone that is two hours ahead of UTC until Tuesday. From Wednesday on, which is day 19,725
// since 1970, the zone is one hour ahead. So Tuesday has 25 hours.
inline Limiter calendar_window(std::uint64_t limit, FixedWindow::Align align) {
  static const auto zone = std::make_shared<Calendar>(
      "Somewhere", std::vector<Calendar::Run>{{-1, std::chrono::hours(2)}, {19'725, std::chrono::hours(1)}});
  return FixedWindow::make(limit, align, zone).value();
}

// Each of these limits refills one unit every ten minutes.
inline std::vector<LimitVector> spacing_vectors() {
  return {
      {"token bucket of three units",
       token_bucket("6/h", 3),
       {{0min, "ada", 1, admitted(2, 10min)},
        {0min, "ada", 1, admitted(1, 20min)},
        {0min, "ada", 1, admitted(0, 30min)},
        {4min, "ada", 1, refused(0, 6min, 26min)},
        {4min, "bob", 2, admitted(1, 20min)},
        {4min, "eve", 4, refused_for_good(3, 0min)},
        {4min, "eve", 3, admitted(0, 30min)},  // the refused request was not charged
        {10min, "ada", 1, admitted(0, 30min)},
        {10min, "ada", 2, refused(0, 20min, 30min)},
        {10min, "ada", 4, refused_for_good(0, 30min)},
        {35min, "ada", 2, admitted(0, 25min)},  // 2½ units were left
        {40min, "ada", 1, admitted(0, 30min)},
        {16h, "ada", 3, admitted(0, 30min)},  // never more than three
        {16h, "ada", 1, refused(0, 10min, 30min)}}},
      {"GCRA without a burst",
       gcra("6/h", 0),
       {{0min, "ada", 1, admitted(0, 10min)},
        {9min, "ada", 1, refused(0, 1min, 1min)},
        {10min, "ada", 1, admitted(0, 10min)},
        {15min, "ada", 1, refused(0, 5min, 5min)},
        {15min, "bob", 2, refused_for_good(1, 0min)},
        {15min, "bob", 1, admitted(0, 10min)},
        {30min, "ada", 1, admitted(0, 10min)}}},
      {"GCRA with a burst of two more",
       gcra("6/h", 2),
       {{0min, "ada", 1, admitted(2, 10min)},
        {0min, "ada", 1, admitted(1, 20min)},
        {0min, "ada", 1, admitted(0, 30min)},
        {0min, "ada", 1, refused(0, 10min, 30min)},
        {10min, "ada", 1, admitted(0, 30min)},
        {25min, "ada", 2, refused(1, 5min, 15min)},  // 1½ units are left
        {25min, "ada", 1, admitted(0, 25min)}}},
      {"leaky bucket without a queue",
       leaky_bucket("6/h", 0),
       {{0min, "ada", 1, admitted(0, 10min)},
        {9min, "ada", 1, refused(0, 1min, 1min)},
        {10min, "ada", 1, admitted(0, 10min)},
        {20min, "ada", 5, admitted(0, 50min)},
        {20min, "ada", 1, refused(0, 50min, 50min)},
        {20min, "bob", 2, admitted(0, 20min)},
        {69min, "ada", 1, refused(0, 1min, 1min)},
        {70min, "ada", 1, admitted(0, 10min)}}},
      {"token bucket that refills stepwise",
       stepped_bucket("50/day", 200),
       {{10h, "ada", 120, admitted(80, 72h)},  // three times 50 units fill it
        {33h, "ada", 100, refused(80, 1h, 49h)},
        {34h, "ada", 100, admitted(30, 96h)},
        {34h, "ada", 131, refused(30, 72h, 96h)},
        {34h, "ada", 201, refused_for_good(30, 96h)},
        {135h, "ada", 1, admitted(199, 24h)},  // full since 130 h, so a new refill period begins now
        {135h, "bob", 200, admitted(0, 96h)},
        {135h, "bob", 1, refused(0, 24h, 96h)},
        {159h, "bob", 51, refused(50, 24h, 72h)},
        {159h, "bob", 50, admitted(0, 96h)}}},
  };
}

inline std::vector<LimitVector> window_vectors() {
  using Align = FixedWindow::Align;
  return {
      {"fixed window of an hour",
       fixed_window("3/h"),
       {{50min, "ada", 2, admitted(1, 10min)},
        {55min, "ada", 2, refused(1, 5min, 5min)},
        {55min, "bob", 3, admitted(0, 5min)},
        {55min, "bob", 1, refused(0, 5min, 5min)},
        {60min, "ada", 2, admitted(1, 60min)},
        {60min, "ada", 4, refused_for_good(1, 60min)},
        {60min, "bob", 3, admitted(0, 60min)},
        {119min, "ada", 1, admitted(0, 1min)}}},
      {"window of a day in its zone",
       calendar_window(3, Align::Day),
       {{20h, "ada", 3, admitted(0, 2h)},
        {21h, "ada", 1, refused(0, 1h, 1h)},
        {22h, "ada", 1, admitted(2, 25h)},  // Tuesday
        {46h, "ada", 3, refused(2, 1h, 1h)},
        {46h, "bob", 3, admitted(0, 1h)},
        {47h, "ada", 3, admitted(0, 24h)}}},
      {"window of a week in its zone",
       calendar_window(2, Align::Week),
       {{150h, "ada", 2, admitted(0, 17h)},  // the week has 169 hours, of which two are over at the beginning
        {166h, "ada", 1, refused(0, 1h, 1h)},
        {167h, "ada", 1, admitted(1, 168h)}}},
      {"window of a month in its zone",
       calendar_window(5, Align::Month),
       {{700h, "ada", 5, admitted(0, 43h)},  // January has 31 days and an hour
        {742h, "ada", 1, refused(0, 1h, 1h)},
        {743h, "ada", 1, admitted(4, 696h)}}},  // February has 29 days
      {"sliding window",
       sliding_window("100/h"),
       {{30min, "ada", 60, admitted(40, 90min)},
        {60min, "ada", 41, refused(40, 1min, 60min)},  // 60 × 59/60 + 41 = 100
        {61min, "bob", 100, admitted(0, 119min)},
        {75min, "ada", 55, admitted(0, 105min)},  // 60 × ¾ + 55 = 100
        {75min, "ada", 1, refused(0, 1min, 105min)},
        {90min, "ada", 15, admitted(0, 90min)},         // 60 × ½ + 55 + 15 = 100
        {120min, "ada", 37, refused(30, 6min, 60min)},  // 70 × 9/10 + 37 = 100
        {126min, "ada", 37, admitted(0, 114min)},
        {126min, "ada", 101, refused_for_good(0, 114min)},
        {240min, "ada", 100, admitted(0, 120min)}}},
      {"sliding window of six buckets",
       bucketed_window("10/h", 6),
       {{9min, "ada", 4, admitted(6, 51min)},  // counts from the start of its ten minutes
        {25min, "ada", 5, admitted(1, 55min)},
        {25min, "ada", 2, refused(1, 35min, 55min)},
        {25min, "bob", 10, admitted(0, 55min)},
        {60min, "ada", 6, refused(5, 20min, 20min)},
        {60min, "ada", 5, admitted(0, 60min)},
        {79min, "ada", 1, refused(0, 1min, 41min)},
        {80min, "ada", 5, admitted(0, 60min)},
        {81min, "ada", 11, refused_for_good(0, 59min)}}},
      {"sliding log",
       sliding_log("3/h"),
       {{10min, "ada", 1, admitted(2, 60min)},
        {20min, "ada", 2, admitted(0, 60min)},
        {30min, "ada", 1, refused(0, 40min, 50min)},
        {30min, "ada", 2, refused(0, 50min, 50min)},  // one expired entry makes no room for two units
        {30min, "ada", 4, refused_for_good(0, 50min)},
        {30min, "bob", 3, admitted(0, 60min)},
        {69min, "ada", 1, refused(0, 1min, 11min)},
        {70min, "ada", 1, admitted(0, 60min)},
        {80min, "ada", 2, admitted(0, 60min)},
        {80min, "ada", 1, refused(0, 50min, 60min)}}},
  };
}

inline std::vector<LimitVector> all_limit_vectors() {
  auto all = spacing_vectors();
  for (auto& vector : window_vectors()) all.push_back(std::move(vector));
  return all;
}

}  // namespace weir::limit
