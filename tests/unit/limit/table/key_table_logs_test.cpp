// Sliding logs in the table: their memory, a full log store, and requests that are charged by every
// algorithm.
#include "unit/limit/traffic.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/limit/permit.hpp"

#include <atomic>
#include <map>
#include <thread>
#include <vector>

namespace weir::limit {
namespace {

class KeyTableLogs : public testing::Test {
 protected:
  static bool charge(KeyTable& table, const Charge& line, TimePoint now, Outcome& out) {
    return table.charge({&line, 1}, now, {&out, 1});
  }
  // Admits requests of one key after another, 1 µs apart, until the log store is full. Returns the number of
  // keys.
  std::uint64_t exhaust(KeyTable& table, const Limiter& limiter) {
    std::uint64_t client = 0;
    Outcome out;
    while (table.stats().log_chunks_used < table.stats().log_chunks) {
      for (int i = 0; i < 9'000; ++i) charge(table, {key_of(client, 7), &limiter}, kStart + Duration(i), out);
      ++client;
    }
    return client;
  }
};

TEST_F(KeyTableLogs, SlidingLogOfOneAdmissionTakesNoExtraMemory) {
  KeyTable table(1'000);
  const auto limiter = sliding_log("5/day");
  Outcome out;
  for (std::uint64_t client = 0; client < 1'000; ++client)
    ASSERT_TRUE(charge(table, {key_of(client), &limiter}, kStart, out));
  EXPECT_EQ(table.stats().log_chunks_used, 0);
  ASSERT_TRUE(charge(table, {key_of(1), &limiter}, kStart + 1s, out));
  EXPECT_EQ(table.stats().log_chunks_used, 1);
}

TEST_F(KeyTableLogs, SlidingLogOf10000RequestsIsExactAndReturnsItsMemory) {
  KeyTable table(1'000);
  const auto limiter = sliding_log("10000/s");
  const Charge line{key_of(1), &limiter};
  Outcome out;
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(charge(table, line, kStart + Duration(i * 50), out));
    ASSERT_EQ(out.remaining, 9'999 - i);
  }
  EXPECT_EQ(table.stats().log_chunks_used, (10'000 + 6) / 7);
  const auto then = kStart + 500ms;
  EXPECT_FALSE(charge(table, line, then, out));
  EXPECT_EQ(out.retry_after, 500ms);
  ASSERT_TRUE(charge(table, line, kStart + 1s + 250ms - 1us, out));
  EXPECT_EQ(out.remaining, 4'999) << "5,000 entries have expired, and one was added";
  EXPECT_EQ(table.stats().log_chunks_used, 715) << "the chunks of expired entries are still held";
  table.sweep(kStart + 3s, table.stats().slots);
  EXPECT_EQ(table.stats().keys, 0);
  EXPECT_EQ(table.stats().log_chunks_used, 0);
}

TEST_F(KeyTableLogs, RejectedRequestLeavesNoEntryInASlidingLog) {
  KeyTable table(1'000);
  const auto log = sliding_log("5/h");
  const Limiter one = token_bucket("1/h", 1);
  std::vector<Outcome> outcomes(2);
  const std::vector<Charge> bill = {{key_of(1), &log, 1, 0}, {key_of(1, 1), &one, 1, 1}};
  ASSERT_TRUE(table.charge(bill, kStart, outcomes));
  for (int i = 1; i < 20; ++i) ASSERT_FALSE(table.charge(bill, kStart + Duration(i), outcomes));
  EXPECT_EQ(table.stats().log_chunks_used, 0);
  EXPECT_EQ(table.peek(bill[0], kStart + 1s).remaining, 3) << "a refused request was entered in the log";
}

TEST_F(KeyTableLogs, AdmissionJoinsTheNewestLogEntryIfMemoryForEntriesIsMissing) {
  KeyTable table(1'000);
  const auto filler = sliding_log("10000/day");
  exhaust(table, filler);
  const auto merged = table.stats().log_merged;
  const auto limiter = sliding_log("3/h");
  const Charge line{key_of(1), &limiter, 1, 1};
  Outcome out;
  ASSERT_TRUE(charge(table, line, kStart, out));
  EXPECT_EQ(table.stats().log_merged, merged) << "the first entry needs no chunk";
  ASSERT_TRUE(charge(table, line, kStart + 10min, out));
  EXPECT_EQ(table.stats().log_merged, merged + 1);
  EXPECT_EQ(out.remaining, 1);
  EXPECT_EQ(out.more_after, 1h) << "both admissions count from the later time";
  ASSERT_TRUE(charge(table, line, kStart + 20min, out));
  EXPECT_FALSE(charge(table, line, kStart + 1h, out)) << "an exact log would admit the request";
  EXPECT_EQ(out.retry_after, 20min) << "the merged log keeps its promised time";
  EXPECT_FALSE(charge(table, line, kStart + 1h + 20min - 1us, out));
  EXPECT_TRUE(charge(table, line, kStart + 1h + 20min, out));
  EXPECT_FALSE(out.overflow);
}

// A full log store merges entries. A log must still admit no more than the limit in any period.
TEST_F(KeyTableLogs, SlidingLogWithoutMemoryNeverAdmitsMoreThanTheLimit) {
  const auto seed = new_seed();
  std::mt19937_64 random(seed);
  KeyTable table(1'000);
  exhaust(table, sliding_log("10000/day"));
  const auto limiter = sliding_log("20/s");
  const auto buckets = Limiter(SlidingLog::make(rate("20/s"), 10).value());
  for (std::uint64_t client = 0; client < 200; ++client) {
    const Limiter& used = client % 2 == 0 ? limiter : buckets;
    const auto back = client % 2 == 0 ? 1s : 900ms;
    std::vector<TimePoint> admitted;
    TimePoint now = kStart;
    Outcome out;
    for (int i = 0; i < 300; ++i, now += Duration(random() % 100'000)) {
      if (!charge(table, {key_of(client), &used, 1, 2}, now, out)) continue;
      admitted.push_back(now);
      if (admitted.size() > 20) {
        ASSERT_GE(now - admitted[admitted.size() - 21], back) << "seed " << seed;
      }
    }
    ASSERT_GT(admitted.size(), 20);
  }
  EXPECT_GT(table.stats().log_merged, 100);
}

TEST_F(KeyTableLogs, NewKeysOfAFullTableShareOneSlidingLogWithASingleEntry) {
  KeyTable table(64);
  const Limiter never = token_bucket("1/36500day", 1);
  Outcome out;
  std::uint64_t client = 0;
  do {
    ASSERT_TRUE(charge(table, {key_of(client++), &never}, kStart, out));
  } while (!out.overflow);
  const auto limiter = sliding_log("3/h");
  const auto newcomer = [&](std::uint64_t i) { return Charge{key_of(5'000 + i), &limiter, 1, 4}; };
  std::uint64_t admitted = 0, asked = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const bool yes = charge(table, newcomer(i), kStart + Duration(i), out);
    if (!out.overflow) continue;
    ++asked;
    admitted += yes ? 1 : 0;
  }
  EXPECT_GT(asked, 100);
  EXPECT_EQ(admitted, 3);
  EXPECT_EQ(table.stats().log_chunks_used, 0);
}

TEST_F(KeyTableLogs, RefundRemovesTheLogEntryOfItsCharge) {
  KeyTable table(1'000);
  const auto limiter = sliding_log("20/h");
  const Charge line{key_of(1), &limiter};
  Outcome out;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(charge(table, line, kStart + i * 1min, out));
  const auto now = kStart + 20min;
  table.refund(line, kStart + 5min, now);   // refunds an entry in the middle
  table.refund(line, kStart + 19min, now);  // refunds the newest entry
  table.refund(line, kStart, now);          // refunds the oldest entry
  const auto then = table.peek(line, kStart + 20min);
  EXPECT_EQ(then.remaining, 2) << "two of three were refunded, and one was charged";
  EXPECT_EQ(then.more_after, 41min) << "the oldest entry is now at minute 1";
  EXPECT_EQ(table.peek({key_of(1), &limiter, 30}, kStart + 20min).reset_after, 58min);
  for (int i = 1; i < 19; ++i)
    if (i != 5) table.refund(line, kStart + i * 1min, now);
  EXPECT_EQ(table.stats().log_chunks_used, 0);
  EXPECT_EQ(table.peek(line, kStart + 20min).remaining, 19);
}

// Two workers read their clocks, and the worker with the later time is charged first. The log enters the
// other worker's charge at the later time, too. A refund of this charge must find the entry.
TEST_F(KeyTableLogs, RefundFindsItsLogEntryEvenIfChargesArriveInAnotherOrderThanTheirTimes) {
  KeyTable table(1'000);
  const auto limiter = sliding_log("5/h");
  const Charge line{key_of(1), &limiter};
  Outcome out;
  ASSERT_TRUE(charge(table, line, kStart + 2us, out));
  ASSERT_TRUE(charge(table, line, kStart + 1us, out));
  table.refund(line, kStart + 1us, kStart + 3us);
  EXPECT_EQ(table.current_outcome(line, kStart + 3us).remaining, 4);
  ASSERT_TRUE(charge(table, line, kStart + 1min, out));
  ASSERT_TRUE(charge(table, line, kStart + 1min - 1us, out));
  table.refund(line, kStart + 1min - 1us, kStart + 2min);
  EXPECT_EQ(table.current_outcome(line, kStart + 2min).remaining, 3);
}

TEST_F(KeyTableLogs, ChargeInTheOverflowCellCanBeRefundedAfterAnotherAdmission) {
  const auto limiter = sliding_log("5/h");
  Cell cell = step(limiter, {}, kStart, 1).next;
  cell = step(limiter, cell, kStart + 1min, 1).next;
  cell = refund(limiter, cell, kStart, 1);
  EXPECT_EQ(step(limiter, cell, kStart + 2min, 6).outcome.remaining, 4);
  EXPECT_EQ(refund(limiter, cell, kStart - 1h, 1), cell) << "an expired charge is not refunded";
}

// The entry that contained the charge has expired, so the refund must change nothing: later entries belong to
// other charges.
TEST_F(KeyTableLogs, RefundOfAnExpiredLogEntryChangesNoOtherEntry) {
  KeyTable table(1'000);
  const auto limiter = sliding_log("5/h");
  const Charge line{key_of(1), &limiter};
  Outcome out;
  for (const auto at : {0min, 30min, 59min}) ASSERT_TRUE(charge(table, line, kStart + at, out));
  (void)charge(table, {key_of(1), &limiter, 9}, kStart + 1h, out);  // rejected; the first entry expires
  EXPECT_FALSE(table.refund(line, kStart, kStart + 1h));
  EXPECT_EQ(table.current_outcome(line, kStart + 1h).remaining, 3);
}

TEST_F(KeyTableLogs, RuleWithAnotherAlgorithmStartsWithItsFullLimit) {
  KeyTable table(1'000);
  const auto log = sliding_log("3/h");
  const Limiter bucket = token_bucket("3/h", 3);
  Outcome out;
  for (int i = 0; i < 3; ++i) charge(table, {key_of(1), &log}, kStart + Duration(i), out);
  EXPECT_EQ(table.peek({key_of(1), &bucket}, kStart + 1s).remaining, 2);
  ASSERT_TRUE(charge(table, {key_of(1), &bucket}, kStart + 1s, out));
  EXPECT_EQ(table.stats().log_chunks_used, 0);
  EXPECT_FALSE(table.refund({key_of(1), &log}, kStart, kStart + 1s));
  ASSERT_TRUE(charge(table, {key_of(1), &log}, kStart + 2s, out));
  EXPECT_EQ(out.remaining, 2);
}

// Requests that are charged by every algorithm.
class MixedAlgorithms : public KeyTableLogs {
 protected:
  std::vector<Charge> bill(std::uint64_t client, Cost cost = 1) const {
    std::vector<Charge> lines;
    for (std::size_t i = 0; i < limiters_.size(); ++i)
      lines.push_back({key_of(client, i), &limiters_[i], cost, static_cast<RuleIndex>(i)});
    return lines;
  }
  void give_back(KeyTable& table, const std::vector<Charge>& lines, TimePoint now) const {
    for (const auto& line : lines)
      if (holds(*line.limiter)) table.release(line, now, {.latency = 1ms});
  }

  const std::vector<Limiter> limiters_ = {token_bucket("40/min", 40),
                                          gcra("60/min", 30),
                                          leaky_bucket("60/min", 50),
                                          SteppedBucket::make(rate("10/min"), 50).value(),
                                          FixedWindow::make(rate("45/min")).value(),
                                          SlidingWindow::make(rate("60/min")).value(),
                                          sliding_log("35/min"),
                                          SlidingLog::make(rate("50/min"), 6).value(),
                                          Concurrency::make(45).value(),
                                          AdaptiveConcurrency::make(3, 80).value()};
};

TEST_F(MixedAlgorithms, RequestIsChargedByAllRulesOrByNone) {
  const auto seed = new_seed();
  std::mt19937_64 random(seed);
  KeyTable table(10'000);
  std::uint64_t charged = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto now = kStart + round * 40ms;
    const auto lines = bill(random() % 8, 1 + random() % 3);
    std::vector<Outcome> outcomes(lines.size());
    std::vector<Outcome> alone;
    for (const auto& line : lines) alone.push_back(table.peek(line, now));
    const bool yes = table.charge(lines, now, outcomes);
    ASSERT_EQ(outcomes, alone) << "seed " << seed << " round " << round;
    ASSERT_EQ(yes, std::ranges::all_of(alone, &Outcome::allowed));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      // Compares how many units are left before and after the request. In a queue this number depends on the
      // cost of the request, so queues are skipped.
      if (std::holds_alternative<LeakyBucket>(*lines[i].limiter)) continue;
      const auto after = table.peek({lines[i].key, lines[i].limiter, kMaxCost}, now);
      const Cost left = alone[i].remaining;
      if (yes || !alone[i].allowed)
        ASSERT_EQ(after.remaining, left) << i;
      else
        ASSERT_EQ(after.remaining, left + lines[i].cost) << i << " was charged by a refused request";
    }
    (yes ? charged : refused) += 1;
    if (yes) give_back(table, lines, now);
    if (yes && random() % 4 == 0)
      table.refund(std::span(lines).first(8), now, std::span(outcomes).first(8), now);
  }
  EXPECT_GT(charged, 500);
  EXPECT_GT(refused, 500);
}

TEST_F(MixedAlgorithms, ConcurrentThreadsAdmitExactlyAsManyRequestsAsOneThread) {
  KeyTable table(10'000);
  std::atomic<std::uint64_t> admitted{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        std::mt19937_64 random(thread);
        std::vector<Outcome> outcomes(limiters_.size());
        for (int i = 0; i < 4'000; ++i) {
          // Requests have different times, so that logs need chunks. All times are within 1 ms, so no limit
          // refills. GCRA has the smallest capacity: 1 and a burst of 30. So each client gets 31 admissions.
          const auto lines = bill(random() % 20);
          if (table.charge(lines, kStart + Duration(random() % 1'000), outcomes)) {
            ++admitted;
            give_back(table, lines, kStart);
          }
          if (i % 100 == 0) table.sweep(kStart, 100);
        }
      });
  }
  EXPECT_EQ(admitted, 20 * 31);
  for (std::uint64_t client = 0; client < 20; ++client) {
    auto lines = bill(client, kMaxCost);
    lines[2].cost = 1;  // for a queue, `remaining` is a number of requests of this cost
    for (std::size_t i = 0; i < 8; ++i)
      ASSERT_EQ(table.peek(lines[i], kStart + 1ms).remaining, quota(limiters_[i]) - 31) << i;
    ASSERT_EQ(table.peek(lines[8], kStart).remaining, 45) << "a permit was lost";
  }
}

TEST_F(MixedAlgorithms, RequestWithAnEarlierTimeThanThePreviousRequestGetsNoAdditionalUnits) {
  KeyTable table(10'000);
  std::vector<Outcome> outcomes(limiters_.size());
  const auto lines = bill(1);
  while (table.charge(lines, kStart + 1h, outcomes)) give_back(table, lines, kStart + 1h);
  // A worker with an earlier clock reading gets the lock later. No units may refill, and no state may move
  // back in time.
  for (const auto earlier : {1us, 1'000us, 60'000'000us, 3'600'000'000us}) {
    ASSERT_FALSE(table.charge(lines, kStart + 1h - earlier, outcomes));
    for (std::size_t i = 0; i < 8; ++i)
      ASSERT_LE(outcomes[i].remaining, table.peek(lines[i], kStart + 1h).remaining)
          << i << ", " << earlier.count();
  }
}

}  // namespace
}  // namespace weir::limit
