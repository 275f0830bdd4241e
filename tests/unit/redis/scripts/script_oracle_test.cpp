// Compares the scripts with the limiters, for random parameters, requests, times and refunds. Both must
// return the same outcomes for the same sequence.
#include "unit/limit/random_case.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"

#include <numeric>

namespace weir::redis {
namespace {

using base::Duration;
using limit::Algorithm;
using limit::Case;
using limit::Cost;
using limit::Dice;
using limit::LogEntry;
using limit::Outcome;
using limit::SlidingLog;
using namespace std::chrono_literals;

// A sliding log as a plain list of entries.
struct PlainLog {
  std::vector<LogEntry> entries;

  [[nodiscard]] std::uint64_t newest() const { return entries.empty() ? 0 : entries.back().mark; }
  [[nodiscard]] Cost total() const {
    return std::accumulate(entries.begin(), entries.end(), Cost{0},
                           [](Cost sum, const LogEntry& e) { return sum + e.cost; });
  }
  template <class Visit>
  void walk(Visit visit) const {
    for (const auto& entry : entries)
      if (!visit(entry)) return;
  }

  void enter(const SlidingLog& limiter, std::uint64_t mark, Cost cost) {
    std::erase_if(entries, [&](const LogEntry& e) { return e.mark + limiter.marks() <= mark; });
    if (entries.empty() || entries.back().mark != mark) entries.push_back({mark, 0});
    entries.back().cost += cost;
  }
  void take_back(std::uint64_t mark, Cost cost) {
    for (auto& entry : entries)
      if (entry.mark == mark) entry.cost -= std::min(entry.cost, cost);
    std::erase_if(entries, [](const LogEntry& e) { return e.cost == 0; });
  }
};

// The state of one key, computed by a limiter in memory.
struct Model {
  Case rule;
  limit::Key key;
  limit::Cell cell{};
  PlainLog log{};
  // The members below describe the state after the last request. They apply only if that request is charged.
  limit::Cell next{};
  std::uint64_t mark = 0;
  base::TimePoint drained_at{};

  Outcome ask(base::TimePoint now, Cost cost) {
    if (const auto* sliding = std::get_if<SlidingLog>(&rule.limiter)) {
      const auto answer = sliding->ask(log, now, cost);
      mark = answer.mark;
      drained_at = answer.drained_at;
      return answer.outcome;
    }
    const auto step = limit::step(rule.limiter, cell, now, cost);
    next = step.next;
    drained_at = step.drained_at;
    return step.outcome;
  }
  void charge(Cost cost) {
    if (const auto* sliding = std::get_if<SlidingLog>(&rule.limiter)) return log.enter(*sliding, mark, cost);
    cell = next;
  }
  void refund(base::TimePoint departure, Cost cost) {
    if (const auto* sliding = std::get_if<SlidingLog>(&rule.limiter))
      return log.take_back(sliding->mark_of(departure), cost);
    cell = limit::refund(rule.limiter, cell, departure, cost);
  }
};

class ScriptOracle : public ::testing::Test {
 protected:
  Server server_;
  TimedScripts scripts_{server_};
  const std::uint64_t seed_ = limit::new_seed();
  Dice dice_{seed_};
  base::TimePoint now_{};
  std::vector<Model> models_;
  std::array<std::uint64_t, limit::kAlgorithms> admitted_{}, refused_{};
  std::vector<Refund> paid_;

  Case any_known() {
    for (;;)
      if (auto rule = dice_.limiter(); is_known(rule.limiter)) return rule;
  }

  void begin_case() {
    scripts_.forget_all();
    models_.clear();
    paid_.clear();
    now_ = base::TimePoint(base::Duration(dice_.between(1'600'000'000'000'000, 2'600'000'000'000'000)));
    for (std::uint64_t i = 0; i < 3; ++i) models_.push_back({any_known(), limit::key_of(i)});
  }

  // Returns a random cost. Tests of long logs get small costs, and sometimes a large one.
  Cost cost_for(const Case& rule) {
    return models_.size() > 1 || dice_.one_in(50) ? dice_.cost(rule) : dice_.between(1, 4);
  }

  // Charges a random request to the scripts and to the models, and compares the outcomes.
  void ask_both() {
    std::vector<Model*> asked;
    std::vector<limit::Charge> bill;
    for (auto& model : models_)
      if (dice_.one_in(2)) asked.push_back(&model);
    if (asked.empty()) asked.push_back(&models_.front());
    for (const auto* model : asked)
      bill.push_back({model->key, &model->rule.limiter, cost_for(model->rule), 0, !dice_.one_in(5)});
    scripts_.set_clock(now_);
    const auto reply = scripts_.charge(bill);
    std::vector<Outcome> outcomes(bill.size());
    base::TimePoint then;
    ASSERT_EQ(read_outcomes(reply, bill, outcomes, then), ReplyReading::Answer);
    ASSERT_EQ(then, now_);
    bool fits = true;
    for (std::size_t i = 0; i < bill.size(); ++i) {
      const auto expected = asked[i]->ask(now_, bill[i].cost);
      EXPECT_EQ(outcomes[i], expected) << asked[i]->rule << ", cost " << bill[i].cost;
      fits = fits && (expected.allowed || !bill[i].enforced);
      ++(expected.allowed ? admitted_ : refused_)[static_cast<std::size_t>(asked[i]->rule.algorithm)];
    }
    for (std::size_t i = 0; fits && i < bill.size(); ++i) {
      if (!outcomes[i].allowed) continue;
      asked[i]->charge(bill[i].cost);
      paid_.push_back({bill[i], now_ + outcomes[i].delay});
      if (dice_.one_in(4)) expect_life(*asked[i]);
    }
  }

  void expect_life(const Model& model) {
    const auto life = scripts_.life_of(model.key);
    EXPECT_GE(now_ + life, model.drained_at) << model.rule;
    EXPECT_LE(now_ + life, model.drained_at + 2ms) << model.rule;
  }

  void refund_both() {
    if (paid_.empty()) return;
    const auto at = paid_.begin() + static_cast<std::ptrdiff_t>(dice_.between(0, paid_.size() - 1));
    const Refund line = *at;
    paid_.erase(at);
    scripts_.set_clock(now_);
    scripts_.refund(line);
    for (auto& model : models_)
      if (model.key == line.charge.key) model.refund(line.departure, line.charge.cost);
  }

  void go_on() {
    const auto& rule = models_[dice_.between(0, models_.size() - 1)].rule;
    now_ += std::min<base::Duration>(dice_.pause(rule), std::chrono::hours(24 * 366 * 30));
    // The last time of the test. 100 years later, doubles of microseconds are no longer exact.
    constexpr base::TimePoint kLast{base::Duration(5'800'000'000'000'000)};
    now_ = std::min(now_, kLast);
  }

  void expect_all_met() {
    for (std::size_t i = 0; i < limit::kAlgorithms; ++i) {
      EXPECT_GT(admitted_[i], 100U) << "algorithm " << i;
      EXPECT_GT(refused_[i], 100U) << "algorithm " << i;
    }
  }
};

TEST_F(ScriptOracle, RandomRequestsGetTheSameOutcomesAsFromTheModel) {
  for (int round = 0; round < 1'500; ++round) {
    begin_case();
    for (int request = 0; request < 16; ++request) {
      ask_both();
      if (dice_.one_in(4)) refund_both();
      ASSERT_FALSE(HasFailure()) << "seed " << seed_ << ", round " << round << ", request " << request
                                 << ", at " << now_.time_since_epoch().count();
      go_on();
    }
  }
  expect_all_met();
}

// After a failover, the new server's clock may be behind. This test makes no refunds, because Redis deletes a
// key if a refund makes the key unused.
TEST_F(ScriptOracle, RandomRequestsGetTheSameOutcomesAsFromTheModelIfTheClockGoesBack) {
  for (int round = 0; round < 500; ++round) {
    begin_case();
    for (int request = 0; request < 16; ++request) {
      ask_both();
      ASSERT_FALSE(HasFailure()) << "seed " << seed_ << ", round " << round << ", request " << request
                                 << ", at " << now_.time_since_epoch().count();
      const auto before = now_;
      go_on();
      if (dice_.one_in(3)) now_ = before - (now_ - before) / 2;
      if (now_ < base::TimePoint(1s)) now_ = before;
    }
  }
}

// Logs with thousands of entries make long lists, long searches, and refunds far from the end.
TEST_F(ScriptOracle, LongSlidingLogsGiveTheSameOutcomesAsTheModel) {
  for (const bool exact : {true, false}) {
    begin_case();
    const auto limiter = exact ? SlidingLog::make({4'000, 7s}) : SlidingLog::make({20'000, 7s}, 999);
    models_ = {{{Algorithm::LoneLog, limiter->rate(), limiter->quota(), base::kForever, *limiter},
                limit::key_of(1)}};
    std::size_t longest = 0;
    for (int request = 0; request < 6'000; ++request) {
      ask_both();
      if (dice_.one_in(3)) refund_both();
      ASSERT_FALSE(HasFailure()) << "seed " << seed_ << ", request " << request;
      longest = std::max(longest, models_[0].log.entries.size());
      now_ += dice_.one_in(2'000) ? Duration(5s) : Duration(dice_.between(0, exact ? 3'000 : 12'000));
    }
    EXPECT_GT(longest, 500U);
  }
}

}  // namespace
}  // namespace weir::redis
