// Tests penalties in Redis. Compares the script with a model (the oracle) and with the key table.
#include "redis/store/deny_cache.hpp"
#include "unit/limit/penalty_oracle.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"

namespace weir::redis {
namespace {

using limit::Charge;
using limit::Dice;
using limit::kStart;
using limit::Outcome;
using limit::Penalty;
using limit::PenaltyHistory;
using namespace std::chrono_literals;

class PenaltyScript : public ::testing::Test {
 protected:
  Charge line(const limit::Limiter& limiter, std::uint64_t client = 1) {
    Charge charge{limit::key_of(client), &limiter};
    charge.penalty = &twice_;
    return charge;
  }
  Outcome ask(base::TimePoint now, const Charge& line, bool peeks = false) {
    scripts_.set_clock(now);
    const BillRequest request{.lines = {&line, 1}, .peeks = peeks};
    const auto reply = scripts_.charge(std::span(&request, 1));
    Outcome outcome;
    base::TimePoint then;
    EXPECT_EQ(read_outcomes(reply, {0, 1, 0, 2}, {&line, 1}, {&outcome, 1}, then, peeks),
              ReplyReading::Answer);
    return outcome;
  }

  Server server_;
  TimedScripts scripts_{server_};
  const limit::Limiter one_ = limit::token_bucket("1/h", 1);
  const Penalty twice_{.after = 2, .first = 2h, .grows = 2, .most = 24h, .forget = 24h};
};

TEST_F(PenaltyScript, PeekingAtAKeyCountsNoViolation) {
  (void)ask(kStart, line(one_));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(ask(kStart, line(one_), true).allowed);
  EXPECT_EQ(ask(kStart, line(one_)).violations, 1);
  const auto seen = ask(kStart, line(one_), true);
  EXPECT_EQ(seen.violations, 1);
  EXPECT_EQ(seen.penalty_left, 0us) << "only a refusal starts the penalty, a peek does not";
}

TEST_F(PenaltyScript, PeekingAtAKeyShowsItsPenalty) {
  for (int i = 0; i < 3; ++i) (void)ask(kStart, line(one_));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(kStart + 1h, line(one_), true).penalty_left, 1h);
  EXPECT_EQ(ask(kStart + 2h, line(one_), true).penalty_left, 0us);
}

TEST_F(PenaltyScript, KeyExpiresWhenItsViolationsAndPenaltiesAreForgotten) {
  for (int i = 0; i < 2; ++i) (void)ask(kStart, line(one_));
  const auto key = limit::penalty_key(limit::key_of(1));
  EXPECT_GE(scripts_.life_of(key), 24h);
  EXPECT_LE(scripts_.life_of(key), 24h + 2ms);
  (void)ask(kStart + 1h, line(one_));
  for (int i = 0; i < 2; ++i) (void)ask(kStart + 1h, line(one_));
  EXPECT_GE(scripts_.expiry_of(key), kStart + 25h);
}

TEST_F(PenaltyScript, ResetOfAKeyEndsItsPenalty) {
  for (int i = 0; i < 3; ++i) (void)ask(kStart, line(one_));
  (void)scripts_.reset(line(one_));
  EXPECT_TRUE(ask(kStart, line(one_)).allowed);
  EXPECT_EQ(ask(kStart, line(one_)).violations, 1);
}

// weir sends the window of another day, so the script cannot decide the bill. The script then charges nothing
// and counts no violation.
TEST_F(PenaltyScript, RequestSentWithoutTheCurrentWindowIsNoViolation) {
  const auto calendar = std::make_shared<limit::Calendar>("UTC", std::vector<limit::Calendar::Run>{{-1, {}}});
  const limit::Limiter day = *limit::FixedWindow::make(1, limit::FixedWindow::Align::Day, calendar);
  const std::array bill{line(one_, 1), line(day, 2)};
  (void)ask(kStart, line(one_, 1));
  scripts_.set_error(72h);
  for (int i = 0; i < 3; ++i) {
    std::array<Outcome, 2> outcomes;
    base::TimePoint then;
    EXPECT_EQ(read_outcomes(scripts_.charge(bill), bill, outcomes, then), ReplyReading::OtherTime);
  }
  EXPECT_EQ(ask(kStart, line(one_, 1)).violations, 1);
}

TEST_F(PenaltyScript, ViolationsOfEarlierRequestsInTheSameCallAreCounted) {
  const auto charge = line(one_);
  const BillRequest request{.lines = {&charge, 1}};
  const std::array<BillRequest, 4> bills{request, request, request, request};
  scripts_.set_clock(kStart);
  const auto reply = scripts_.charge(bills);
  std::array<Outcome, 4> outcomes;
  for (std::size_t i = 0; i < bills.size(); ++i) {
    base::TimePoint then;
    ASSERT_EQ(read_outcomes(reply, {i, 4, 2 * i, 8}, {&charge, 1}, {&outcomes[i], 1}, then),
              ReplyReading::Answer);
  }
  EXPECT_TRUE(outcomes[0].allowed);
  EXPECT_EQ(outcomes[1].violations, 1);
  EXPECT_TRUE(outcomes[2].penalty_begins);
  EXPECT_FALSE(outcomes[3].penalty_begins);
  EXPECT_EQ(outcomes[3].penalty_left, 2h);
}

TEST_F(PenaltyScript, CachedRefusalAppliesOnlyWhileThePenaltyRuns) {
  LastRefunds refunds;
  DenyCache cache(refunds);
  const auto charge = line(one_);
  const DenyCache::Time sent{1h};
  const auto remember = [&](base::TimePoint at) {
    scripts_.set_clock(at);
    const auto reply = scripts_.charge(std::span(&charge, 1));
    const auto answers = answers_of_refused(reply, {0, 1, 0, 2}, {&charge, 1});
    if (!answers.empty()) cache.remember({&charge, 1}, answers, {sent, sent + 1ms, at});
  };
  Outcome outcome;
  const auto refuses = [&] { return cache.refuses({&charge, 1}, {&outcome, 1}, sent + 2ms).has_value(); };
  remember(kStart);
  remember(kStart);
  EXPECT_FALSE(refuses()) << "Redis must count the violation";
  remember(kStart);
  ASSERT_TRUE(refuses());
  EXPECT_EQ(outcome.penalty_left, 2h - 1ms);
  EXPECT_EQ(outcome.retry_after, 2h - 1ms);
  remember(kStart + 2h - 1ms);
  EXPECT_FALSE(refuses()) << "the penalty may be over";
}

TEST_F(PenaltyScript, CachedRefusalReportsThePenaltyOfEachCharge) {
  LastRefunds refunds;
  DenyCache cache(refunds);
  const limit::Limiter three = limit::token_bucket("1/h", 3);
  const std::array bill{line(one_, 1), line(three, 2)};
  const DenyCache::Time sent{1h};
  const auto remember = [&](std::span<const Charge> lines) {
    scripts_.set_clock(kStart);
    const auto reply = scripts_.charge(lines);  // `answers` points into the reply
    const auto answers = answers_of_refused(reply, {0, 1, 0, script_lines(lines)}, lines);
    if (!answers.empty()) cache.remember(lines, answers, {sent, sent + 1ms, kStart});
  };
  std::array<Outcome, 2> outcomes;
  const auto refuses = [&](std::span<const Charge> lines) {
    return cache.refuses(lines, std::span(outcomes).first(lines.size()), sent + 2ms).has_value();
  };
  for (int i = 0; i < 3; ++i) remember(bill);
  EXPECT_FALSE(refuses(bill)) << "Redis must count a violation of the second rule";
  for (int i = 0; i < 5; ++i) remember(std::span(bill).last(1));
  remember(bill);
  ASSERT_TRUE(refuses(bill));
  EXPECT_EQ(outcomes[0].penalty_left, 2h - 1ms);
  EXPECT_EQ(outcomes[1].penalty_left, 2h - 1ms);
  auto without = bill;
  without[1].penalty = nullptr;
  remember(without);
  ASSERT_TRUE(refuses(without));
  EXPECT_EQ(outcomes[0].penalty_left, 2h - 1ms) << "only the first rule has a penalty";
  EXPECT_EQ(outcomes[1].penalty_left, 0us);
}

// Instances whose clocks differ send their bills to one Redis, several at a time. Redis's clock decides.
TEST_F(PenaltyScript, RandomHistoriesAgreeWithAModelIfClocksDiffer) {
  const auto seed = limit::new_seed();
  Dice dice(seed);
  std::size_t penalties = 0;
  constexpr std::array<base::Duration, 3> kSkews{0s, -90s, 7min};
  for (std::uint64_t number = 0; number < 10'000; ++number) {
    if (number % 100 == 0) scripts_.forget_all();
    PenaltyHistory history(dice, number);
    auto now = kStart;
    for (int call = 0; call < 6; ++call, now += history.pause()) {
      std::vector<PenaltyHistory::Request> requests(dice.between(1, 3));
      std::vector<std::vector<Charge>> lines(requests.size());
      std::vector<BillRequest> bills;
      std::size_t all = 0;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i] = history.ask(now);
        for (const auto& line : requests[i].lines) lines[i].push_back(line.charge);
        bills.push_back({.lines = lines[i]});
        all += script_lines(lines[i]);
      }
      scripts_.set_clock(now);
      scripts_.set_error(dice.one_of(kSkews));
      const auto reply = scripts_.charge(bills);
      std::size_t before = 0;
      for (std::size_t i = 0; i < requests.size(); before += script_lines(lines[i]), ++i) {
        std::vector<Outcome> outcomes(lines[i].size());
        base::TimePoint then;
        ASSERT_EQ(read_outcomes(reply, {i, bills.size(), before, all}, lines[i], outcomes, then),
                  ReplyReading::Answer)
            << "seed " << seed << ", history " << number;
        for (std::size_t line = 0; line < outcomes.size(); ++line)
          EXPECT_EQ(outcomes[line], requests[i].lines[line].expected) << "rule " << lines[i][line].rule;
      }
      ASSERT_FALSE(HasFailure()) << "seed " << seed << ", history " << number << ", call " << call;
    }
    penalties += history.penalties();
  }
  EXPECT_GT(penalties, 5'000U);
}

}  // namespace
}  // namespace weir::redis
