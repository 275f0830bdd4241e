// Tests when weir may forward the pieces of bodies. Only now() reads a clock; no test waits.
#include "proxy/pacing/pacing.hpp"

#include "unit/proxy/lone_worker.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kPiece = 16 << 10;
constexpr std::uint64_t kMebibyte = 1 << 20;

// A worker, and rules that each pace bodies to 1 MiB/s.
struct Paced : LoneWorker {
  Paced() : LoneWorker({}) {
    for (limit::RuleIndex index = 0; index < 2; ++index) {
      rules.push_back(
          {.name = "r",
           .index = index,
           .rule_number = index,
           .limiter = limit::LeakyBucket::make_pacer({kMebibyte, seconds(1)}, policy::Rule::kLongestPaceLead)
                          .value()});
      rules.back().bandwidth = "1MiB/s";
    }
  }
  [[nodiscard]] std::unique_ptr<Pacing> pacing(std::uint64_t key, std::size_t rule = 0) {
    policy::Evaluation evaluation;
    evaluation.paced.push_back({&rules[rule], {key, 7}});
    return Pacing::make(worker, evaluation, waited);
  }
  std::vector<policy::Rule> rules;
  base::Duration waited{0};
};

TEST(Pacing, PieceHasTheOctetsOfATenthOfASecondWithinBounds) {
  EXPECT_EQ(piece_of({100'000, seconds(1)}), 10'000U);
  EXPECT_EQ(piece_of({1, milliseconds(1)}), 512U);
  EXPECT_EQ(piece_of({kMebibyte, seconds(1)}), kPiece);
}

TEST(Pacing, RequestWithoutABandwidthRuleIsNotPaced) {
  Paced all;
  EXPECT_EQ(Pacing::make(all.worker, policy::Evaluation(), all.waited), nullptr);
}

TEST(Pacing, PiecesOfAKeyAreForwardedAtTheRateAfterABurst) {
  Paced all;
  const auto pacing = all.pacing(1);
  const auto begun = all.clock.now();
  std::vector<base::Duration> due;
  for (int i = 0; i < 128; ++i) due.push_back(pacing->charge(kPiece).due - begun);
  const auto took = all.clock.now() - begun;
  EXPECT_LE(due[6], took) << "six pieces are less than what passes in 100 ms";
  for (std::size_t i = 8; i < due.size(); ++i) {
    const auto earliest = base::Duration(static_cast<std::int64_t>(i * kPiece * 1'000'000 / kMebibyte));
    EXPECT_GE(due[i], earliest - kPaceAhead) << i;
    EXPECT_LE(due[i], earliest - kPaceAhead + took + milliseconds(1)) << i;
  }
}

TEST(Pacing, RequestsOfAKeyForwardTheirPiecesInTurn) {
  Paced all;
  const auto one = all.pacing(1), other = all.pacing(1);
  base::TimePoint last{};
  for (int i = 0; i < 32; ++i) {
    (void)one->charge(kPiece);
    (void)other->charge(kPiece);
  }
  for (int i = 0; i < 8; ++i)
    for (auto* each : {one.get(), other.get()}) {
      const auto due = each->charge(kPiece).due;
      EXPECT_GT(due, last);
      last = due;
    }
  EXPECT_GE(last - all.clock.now(), milliseconds(500)) << "a key has one rate";
}

TEST(Pacing, BusyKeyDoesNotDelayOtherKeysOrRules) {
  Paced all;
  const auto busy = all.pacing(1);
  (void)busy->charge(100 * kMebibyte);
  EXPECT_GE(busy->charge(1).due - all.clock.now(), milliseconds(900));
  const auto other_key = all.pacing(2)->charge(kPiece).due;
  const auto other_rule = all.pacing(3, 1)->charge(kPiece).due;
  const auto now = all.clock.now();
  EXPECT_LE(other_key, now);
  EXPECT_LE(other_rule, now);
}

TEST(Pacing, SlowestOfSeveralRulesDecidesTheDelay) {
  Paced all;
  (void)all.pacing(1)->charge(5 * kMebibyte);
  policy::Evaluation evaluation;
  evaluation.paced.push_back({&all.rules[1], {5, 7}});
  evaluation.paced.push_back({&all.rules[0], {1, 7}});
  const auto both = Pacing::make(all.worker, evaluation, all.waited);
  EXPECT_GE(both->charge(1).due - all.clock.now(), seconds(4));
  both->note_wait(milliseconds(3));
  EXPECT_EQ(all.counters.bandwidth_waited(0).value(), 3000U);
  EXPECT_EQ(all.counters.bandwidth_waited(1).value(), 0U);
}

TEST(Pacing, KeyIsChargedAtMostTenSecondsInAdvance) {
  Paced all;
  const auto since = all.clock.now();
  Pacing::Delay last{true, {}};
  unsigned charged = 0;
  // Each exchange is charged for one piece and ends at once.
  for (; charged < 100'000; ++charged) {
    const auto turn = all.pacing(1)->charge(kPiece);
    if (!turn.charged) break;
    last = turn;
  }
  const auto now = all.clock.now();
  EXPECT_GE(charged, 640U) << "10 s";
  EXPECT_LE(last.due - now, policy::Rule::kLongestPaceLead);
  EXPECT_LE(charged * kPiece, (10'000'000 + (now - since).count()) * kMebibyte / 1'000'000 + kPiece);
  const auto refused = all.pacing(1)->charge(kPiece);
  EXPECT_FALSE(refused.charged);
  EXPECT_GE(refused.due - now, milliseconds(100)) << "a waiting piece does not ask all the time";
  const auto waiting = all.pacing(1);
  auto& gate = waiting->to_server();
  EXPECT_EQ(gate.admit(5), 0U);
  EXPECT_GT(gate.wait(), base::Duration{0});
  EXPECT_LE(gate.wait(), seconds(1));
}

TEST(PaceGate, PieceIsChargedOnceEvenIfItIsForwardedInParts) {
  Paced all;
  const auto pacing = all.pacing(1);
  auto& gate = pacing->to_client();
  EXPECT_EQ(gate.admit(100'000), kPiece);
  gate.passed(1000);
  EXPECT_EQ(gate.admit(100'000), kPiece - 1000);
  gate.passed(0);
  EXPECT_EQ(gate.admit(10), 10U);
  gate.passed(10);
  const auto left = all.table.peek({.key = {1, 7}, .limiter = all.rules[0].limiter.get()}, all.clock.now());
  EXPECT_LE(left.delay, milliseconds(16)) << "one piece is charged";
}

TEST(PaceGate, OctetsAheadOfTheRateAreHeldBackForAtMostASecondAtATime) {
  Paced all;
  const auto pacing = all.pacing(1);
  auto& gate = pacing->to_server();
  (void)pacing->charge(5 * kMebibyte);
  EXPECT_EQ(gate.admit(5), 0U);
  EXPECT_EQ(gate.admit(5), 0U) << "asking again charges nothing";
  EXPECT_EQ(gate.wait(), seconds(1));
  const auto state = all.table.peek({.key = {1, 7}, .limiter = all.rules[0].limiter.get()}, all.clock.now());
  EXPECT_LE(state.delay, seconds(5) + milliseconds(1));
}

}  // namespace
}  // namespace weir::proxy
