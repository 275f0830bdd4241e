#include "weir/limit/hybrid_timestamp.hpp"

#include "unit/limit/random_case.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/limit/settle.hpp"

#include <algorithm>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace weir::limit {
namespace {

TEST(HybridTimestamp, LaterChangeHasALaterTimestampEvenInTheSameMicrosecond) {
  EXPECT_EQ(timestamp_after(0, kStart), timestamp_at(kStart));
  EXPECT_EQ(timestamp_after(timestamp_at(kStart), kStart), timestamp_at(kStart) + 1);
  EXPECT_EQ(timestamp_after(timestamp_at(kStart), kStart + 1us), timestamp_at(kStart + 1us));
  EXPECT_EQ(timestamp_after(timestamp_at(kStart + 5us), kStart),
            timestamp_at(kStart + 5us) + 1);  // kStart, which the caller has read, precedes the last change
}

// A call of one thread to the table, and the result.
struct TableCall {
  enum class Kind { Charge, Refund, Settle, Release } kind = Kind::Charge;
  std::vector<Charge> charges;
  std::vector<Outcome> outcomes;
  base::TimePoint at{}, charged_at{};
  Cost actual = 0;
  HybridTimestamp timestamp = 0;
};

void execute(KeyTable& table, TableCall& call, HybridTimestamp* timestamp) {
  const auto& charge = call.charges.front();
  switch (call.kind) {
    case TableCall::Kind::Charge:
      call.outcomes.assign(call.charges.size(), {});
      table.charge(call.charges, call.at, call.outcomes, timestamp);
      break;
    case TableCall::Kind::Refund:
      (void)table.refund(charge, call.charged_at, call.at, false, timestamp);
      break;
    case TableCall::Kind::Settle:
      table.settle(charge, {call.charged_at, call.actual, call.at}, false, timestamp);
      break;
    case TableCall::Kind::Release:
      table.release(charge, call.at, {}, false, timestamp);
      break;
  }
}

// The input of one round: limiters of all algorithms, and the time between calls.
struct Rules {
  explicit Rules(Dice& dice) {
    for (std::size_t i = 0; i < 4; ++i) cases.push_back(dice.limiter());
    const auto at_once = dice.between(2, 6);
    cases.push_back(holding(Concurrency::make(at_once).value(), at_once));
    cases.push_back(holding(AdaptiveConcurrency::make(1, at_once * at_once).value(), at_once));
    const auto longest = static_cast<std::uint64_t>(window(cases.front().limiter).count());
    pace = dice.magnitude(1, 1 + longest / kCalls);
  }
  static Case holding(const Limiter& limiter, std::uint64_t capacity) {
    return {Algorithm::LoneLog, {1, 1s}, capacity, base::kForever, limiter};
  }
  static constexpr int kCalls = 100;  // number of calls of each worker
  std::vector<Case> cases;
  std::uint64_t pace;  // µs between two calls of a worker
};

bool charged(const TableCall& call) {
  for (std::size_t line = 0; line < call.charges.size(); ++line)
    if (call.charges[line].enforced && !call.outcomes[line].allowed) return false;
  return true;
}

// The calls of one worker. A worker reads its clock some time before the table takes its locks.
class Work {
 public:
  Work(KeyTable& table, const Rules& rules, std::uint64_t seed) : table_(table), rules_(rules), dice_(seed) {}

  void run() {
    for (int i = 0; i < Rules::kCalls; ++i) {
      const auto at =
          kStart + Duration(static_cast<std::uint64_t>(i) * rules_.pace + dice_.between(0, 12 * rules_.pace));
      TableCall call = !later_.empty() && dice_.one_in(2) ? take_later(at) : bill(at);
      if (call.charges.empty()) continue;
      execute(table_, call, &call.timestamp);
      calls.push_back(call);
      if (call.kind == TableCall::Kind::Charge && charged(call)) plan_undo(call);
    }
  }

  std::vector<TableCall> calls;

 private:
  TableCall bill(TimePoint at) {
    TableCall call;
    call.at = at;
    for (std::size_t i = 0; i < rules_.cases.size(); ++i) {
      if (dice_.one_in(2)) continue;
      const auto rule = static_cast<RuleIndex>(i);
      call.charges.push_back({key_of(dice_.between(0, 2), rule), &rules_.cases[i].limiter,
                              dice_.cost(rules_.cases[i]), rule, !dice_.one_in(4)});
    }
    return call;
  }
  TableCall take_later(TimePoint at) {
    std::swap(later_[dice_.between(0, later_.size() - 1)], later_.back());
    TableCall call = later_.back();
    later_.pop_back();
    call.at = std::max(call.at, at);
    return call;
  }
  void plan_undo(const TableCall& call) {
    for (std::size_t line = 0; line < call.charges.size(); ++line) {
      const auto& charge = call.charges[line];
      if (!call.outcomes[line].allowed || (!holds(*charge.limiter) && dice_.one_in(2))) continue;
      TableCall next{.charges = {charge}, .outcomes = {}, .at = call.at};
      next.charged_at = call.at;
      next.kind = holds(*charge.limiter)                        ? TableCall::Kind::Release
                  : settles(*charge.limiter) && dice_.one_in(2) ? TableCall::Kind::Settle
                                                                : TableCall::Kind::Refund;
      if (next.kind == TableCall::Kind::Refund) next.charged_at += call.outcomes[line].delay;
      next.actual = dice_.one_in(3) ? 0 : dice_.magnitude(0, 2 * charge.cost);
      later_.push_back(next);
    }
  }

  KeyTable& table_;
  const Rules& rules_;
  Dice dice_;
  std::vector<TableCall> later_;
};

// Repeats all calls on a new table, in the order of their timestamps, and expects the same results. Returns
// the number of calls with a rejected charge.
std::size_t expect_the_same_in_order(std::vector<TableCall>& calls) {
  std::sort(calls.begin(), calls.end(),
            [](const TableCall& a, const TableCall& b) { return a.timestamp < b.timestamp; });
  KeyTable again(1000);
  std::size_t refused = 0;
  for (auto& call : calls) {
    const auto first_outcomes = call.outcomes;
    execute(again, call, nullptr);
    EXPECT_EQ(call.outcomes, first_outcomes);
    if (testing::Test::HasFailure()) return 0;
    refused += std::any_of(first_outcomes.begin(), first_outcomes.end(),
                           [](const Outcome& one) { return !one.allowed; })
                   ? 1
                   : 0;
  }
  return refused;
}

std::vector<TableCall> run_workers(const Rules& rules, Dice& dice) {
  constexpr int kWorkers = 4;
  KeyTable table(1000);
  std::vector<std::unique_ptr<Work>> workers;
  for (int i = 0; i < kWorkers; ++i)
    workers.push_back(std::make_unique<Work>(table, rules, dice.between(0, ~std::uint64_t{0})));
  std::latch start(kWorkers);
  std::vector<std::jthread> threads;
  for (auto& worker : workers)
    threads.emplace_back([&worker, &start] {
      start.arrive_and_wait();
      worker->run();
    });
  for (auto& thread : threads) thread.join();
  std::vector<TableCall> calls;
  for (const auto& worker : workers) calls.insert(calls.end(), worker->calls.begin(), worker->calls.end());
  return calls;
}

TEST(HybridTimestamp, ReplayOfChargesInTheOrderOfTheirTimestampsGivesTheSameOutcomes) {
  const auto seed = new_seed();
  Dice dice(seed);
  std::size_t done = 0, refused = 0;
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    const Rules rules(dice);
    auto calls = run_workers(rules, dice);
    EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](const TableCall& call) {
      return call.timestamp >= timestamp_at(call.at) ||
             call.timestamp == 0;  // 0: the call had nothing to settle
    }));
    refused += expect_the_same_in_order(calls);
    done += calls.size();
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(done, 10'000U);
  EXPECT_GT(refused, done / 100);
}

}  // namespace
}  // namespace weir::limit
