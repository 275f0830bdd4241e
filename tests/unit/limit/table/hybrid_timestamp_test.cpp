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
            timestamp_at(kStart + 5us) + 1);  // the caller read its clock before the last change
}

// A call of one thread to the table, and the result.
struct Deed {
  enum class Kind { Charge, Refund, Settle, Release } kind = Kind::Charge;
  std::vector<Charge> charges;
  std::vector<Outcome> outcomes;
  base::TimePoint at{}, charged_at{};
  Cost actual = 0;
  HybridTimestamp timestamp = 0;
};

void carry_out(KeyTable& table, Deed& deed, HybridTimestamp* timestamp) {
  const auto& charge = deed.charges.front();
  switch (deed.kind) {
    case Deed::Kind::Charge:
      deed.outcomes.assign(deed.charges.size(), {});
      table.charge(deed.charges, deed.at, deed.outcomes, timestamp);
      break;
    case Deed::Kind::Refund:
      (void)table.refund(charge, deed.charged_at, deed.at, false, timestamp);
      break;
    case Deed::Kind::Settle:
      table.settle(charge, {deed.charged_at, deed.actual, deed.at}, false, timestamp);
      break;
    case Deed::Kind::Release:
      table.release(charge, deed.at, {}, false, timestamp);
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
    pace = dice.magnitude(1, 1 + longest / kDeeds);
  }
  static Case holding(const Limiter& limiter, std::uint64_t capacity) {
    return {Algorithm::LoneLog, {1, 1s}, capacity, base::kForever, limiter};
  }
  static constexpr int kDeeds = 100;  // number of calls of each worker
  std::vector<Case> cases;
  std::uint64_t pace;  // µs between two calls of a worker
};

bool charged(const Deed& deed) {
  for (std::size_t line = 0; line < deed.charges.size(); ++line)
    if (deed.charges[line].enforced && !deed.outcomes[line].allowed) return false;
  return true;
}

// The calls of one worker. A worker reads its clock some time before the table takes its locks.
class Work {
 public:
  Work(KeyTable& table, const Rules& rules, std::uint64_t seed) : table_(table), rules_(rules), dice_(seed) {}

  void run() {
    for (int i = 0; i < Rules::kDeeds; ++i) {
      const auto at =
          kStart + Duration(static_cast<std::uint64_t>(i) * rules_.pace + dice_.between(0, 12 * rules_.pace));
      Deed deed = !later_.empty() && dice_.one_in(2) ? put_off(at) : bill(at);
      if (deed.charges.empty()) continue;
      carry_out(table_, deed, &deed.timestamp);
      deeds.push_back(deed);
      if (deed.kind == Deed::Kind::Charge && charged(deed)) undo_later(deed);
    }
  }

  std::vector<Deed> deeds;

 private:
  Deed bill(TimePoint at) {
    Deed deed;
    deed.at = at;
    for (std::size_t i = 0; i < rules_.cases.size(); ++i) {
      if (dice_.one_in(2)) continue;
      const auto rule = static_cast<RuleIndex>(i);
      deed.charges.push_back({key_of(dice_.between(0, 2), rule), &rules_.cases[i].limiter,
                              dice_.cost(rules_.cases[i]), rule, !dice_.one_in(4)});
    }
    return deed;
  }
  Deed put_off(TimePoint at) {
    std::swap(later_[dice_.between(0, later_.size() - 1)], later_.back());
    Deed deed = later_.back();
    later_.pop_back();
    deed.at = std::max(deed.at, at);
    return deed;
  }
  void undo_later(const Deed& deed) {
    for (std::size_t line = 0; line < deed.charges.size(); ++line) {
      const auto& charge = deed.charges[line];
      if (!deed.outcomes[line].allowed || (!holds(*charge.limiter) && dice_.one_in(2))) continue;
      Deed next{.charges = {charge}, .outcomes = {}, .at = deed.at};
      next.charged_at = deed.at;
      next.kind = holds(*charge.limiter)                        ? Deed::Kind::Release
                  : settles(*charge.limiter) && dice_.one_in(2) ? Deed::Kind::Settle
                                                                : Deed::Kind::Refund;
      if (next.kind == Deed::Kind::Refund) next.charged_at += deed.outcomes[line].delay;
      next.actual = dice_.one_in(3) ? 0 : dice_.magnitude(0, 2 * charge.cost);
      later_.push_back(next);
    }
  }

  KeyTable& table_;
  const Rules& rules_;
  Dice dice_;
  std::vector<Deed> later_;
};

// Repeats all calls on a new table, in the order of their timestamps, and expects the same results. Returns
// the number of calls with a rejected charge.
std::size_t expect_the_same_in_order(std::vector<Deed>& deeds) {
  std::sort(deeds.begin(), deeds.end(),
            [](const Deed& a, const Deed& b) { return a.timestamp < b.timestamp; });
  KeyTable again(1000);
  std::size_t refused = 0;
  for (auto& deed : deeds) {
    const auto told = deed.outcomes;
    carry_out(again, deed, nullptr);
    EXPECT_EQ(deed.outcomes, told);
    if (testing::Test::HasFailure()) return 0;
    refused += std::any_of(told.begin(), told.end(), [](const Outcome& one) { return !one.allowed; }) ? 1 : 0;
  }
  return refused;
}

std::vector<Deed> work_at_once(const Rules& rules, Dice& dice) {
  constexpr int kWorkers = 4;
  KeyTable table(1000);
  std::vector<std::unique_ptr<Work>> workers;
  for (int i = 0; i < kWorkers; ++i)
    workers.push_back(std::make_unique<Work>(table, rules, dice.between(0, ~std::uint64_t{0})));
  std::latch all_there(kWorkers);
  std::vector<std::jthread> threads;
  for (auto& worker : workers)
    threads.emplace_back([&worker, &all_there] {
      all_there.arrive_and_wait();
      worker->run();
    });
  for (auto& thread : threads) thread.join();
  std::vector<Deed> deeds;
  for (const auto& worker : workers) deeds.insert(deeds.end(), worker->deeds.begin(), worker->deeds.end());
  return deeds;
}

TEST(HybridTimestamp, ReplayOfChargesInTheOrderOfTheirTimestampsGivesTheSameOutcomes) {
  const auto seed = new_seed();
  Dice dice(seed);
  std::size_t done = 0, refused = 0;
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    const Rules rules(dice);
    auto deeds = work_at_once(rules, dice);
    EXPECT_TRUE(std::all_of(deeds.begin(), deeds.end(), [](const Deed& deed) {
      return deed.timestamp >= timestamp_at(deed.at) ||
             deed.timestamp == 0;  // 0: the call had nothing to settle
    }));
    refused += expect_the_same_in_order(deeds);
    done += deeds.size();
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(done, 10'000U);
  EXPECT_GT(refused, done / 100);
}

}  // namespace
}  // namespace weir::limit
