// A table full of keys in use. New keys then share one state (the overflow cell) for each limiter of a rule.
// That state must be charged, refunded and settled like the state of a single key.
#include "limit/table/overflow.hpp"

#include "unit/limit/random_case.hpp"
#include "unit/limit/traffic.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/limit/pair.hpp"
#include "weir/limit/settle.hpp"

#include <array>
#include <optional>
#include <vector>

namespace weir::limit {
namespace {

constexpr RuleIndex kFillers = 200;
// An instant well before the last instant that the table can store.
constexpr TimePoint kLatest{Duration(std::int64_t{1} << 54)};

// Charges keys that are never evicted, until a new key finds no slot.
void fill(KeyTable& table, const Limiter& one_at_once) {
  std::uint64_t client = 0;
  Outcome out;
  do {
    const Charge filler{key_of(client++, kFillers), &one_at_once, 1, kFillers};
    ASSERT_TRUE(table.charge({&filler, 1}, kStart, {&out, 1}));
  } while (!out.overflow);
}

// A rule with an elastic limit has two limiters. Both have the same algorithm and count every admission; one
// of them decides.
struct Pair {
  Case own, elastic;
};

Pair random_pair(Dice& dice) {
  if (dice.one_in(5)) {
    const auto limit = dice.between(1, 9);
    const auto more = limit + dice.between(0, 9);
    return {{Algorithm::LoneLog, {1, 1s}, limit, base::kForever, Concurrency::make(limit).value()},
            {Algorithm::LoneLog, {1, 1s}, more, base::kForever, Concurrency::make(more).value()}};
  }
  const auto own = dice.limiter();
  for (;;) {
    const auto other = dice.limiter();
    if (other.limiter.index() == own.limiter.index()) return {own, other};
  }
}

// A key table without a free slot, so that all keys use its overflow cells. Sends the same requests to the
// table and to a model of these cells: one state for each limiter of the pair, which the test computes
// itself.
class FullTable {
 public:
  FullTable(Dice& dice, const Pair& pair) : dice_(dice), pair_(pair), table_(16), now_(dice.start()) {
    fill(table_, one_);
  }

  void go(int requests) {
    for (int i = 0; i < requests && !testing::Test::HasFatalFailure(); ++i) {
      now_ = std::min(now_ + dice_.pause(pair_.own), kLatest);
      request();
      while (!flying_.empty() && dice_.one_in(2)) end();
    }
  }

 private:
  struct Charged {
    std::array<Charge, 2> bill;
    std::array<Outcome, 2> outcomes;
    TimePoint at;
  };
  [[nodiscard]] const Limiter& limiter(LimiterId limiter_id) const {
    return limiter_id == 0 ? pair_.own.limiter : pair_.elastic.limiter;
  }

  void request() {
    Charged charged{.bill = {}, .outcomes = {}, .at = now_};
    const auto cost = dice_.cost(pair_.own);
    const bool busy = dice_.one_in(2);
    std::array<Step, 2> expected;
    for (std::size_t line = 0; line < 2; ++line) {
      const auto limiter_id = static_cast<LimiterId>((line == 0) == busy ? 0 : 1);
      charged.bill[line] = {.key = key_of(client_, limiter_id),
                            .limiter = &limiter(limiter_id),
                            .cost = cost,
                            .rule = 3,
                            .enforced = line == 0,
                            .limiter_id = limiter_id,
                            .counted = line == 1};
      expected[line] = step(limiter(limiter_id), cells_[limiter_id], now_, cost);
      expected[line].outcome.overflow = true;
    }
    ++client_;
    const bool admitted = expected[0].outcome.allowed;
    if (!expected[1].outcome.allowed) expected[1].next = beyond(charged.bill[1], *charged.bill[0].limiter);
    expected[1].outcome = counted(*charged.bill[1].limiter, expected[1].outcome, admitted);
    ASSERT_EQ(table_.charge(charged.bill, now_, charged.outcomes), admitted);
    for (std::size_t line = 0; line < 2; ++line) {
      ASSERT_EQ(charged.outcomes[line], expected[line].outcome) << "line " << line;
      if (admitted && expected[line].outcome.allowed)
        cells_[charged.bill[line].limiter_id] = expected[line].next;
    }
    admitted ? flying_.push_back(charged) : void(++refused_);
    ASSERT_EQ(table_.stats().overflow_refused, refused_);
  }

  [[nodiscard]] Cell beyond(const Charge& charge, const Limiter& decider) const {
    const auto most = most_counted(*charge.limiter, decider);
    return charge_over_limit(*charge.limiter, cells_[charge.limiter_id], now_, charge.cost, most);
  }

  void end() {
    const auto which = dice_.between(0, flying_.size() - 1);
    const Charged charged = flying_[which];
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(which));
    const auto ending = dice_.between(0, 2);
    for (std::size_t line = 0; line < 2; ++line)
      if (charged.outcomes[line].allowed) end(charged, line, ending);
  }

  void end(const Charged& charged, std::size_t line, std::uint64_t ending) {
    const Charge& charge = charged.bill[line];
    const Limiter& limiter = *charge.limiter;
    Cell& cell = cells_[charge.limiter_id];
    if (holds(limiter)) {
      table_.release(charge, now_, {}, true);
      cell = release(limiter, cell, now_, charge.cost, {});
    } else if (ending == 0) {
      const auto departure = charged.at + charged.outcomes[line].delay;
      table_.refund(charge, departure, departure, true);
      cell = refund(limiter, cell, departure, charge.cost);
    } else if (ending == 1 && settles(limiter)) {
      const Cost actual = dice_.one_in(3) ? 0 : dice_.magnitude(0, 2 * charge.cost);
      table_.settle(charge, {.charged_at = charged.at, .actual = actual, .now = now_}, true);
      if (actual != charge.cost) cell = settle(limiter, cell, charged.at, charge.cost, actual);
      ASSERT_EQ(table_.current_outcome(charge, now_, true).remaining,
                current_outcome(limiter, cell, now_).remaining);
    }
  }

  const Limiter one_ = Concurrency::make(1).value();
  Dice& dice_;
  const Pair& pair_;
  KeyTable table_;
  TimePoint now_;
  std::array<Cell, 2> cells_;
  std::vector<Charged> flying_;
  std::uint64_t refused_ = 0;
  std::uint64_t client_ = 0;
};

// Each limiter of the rule must have its own count, and a charge must be refunded only once. Otherwise an
// outcome soon differs from the model.
TEST(Overflow, BothLimitsOfARuleWithAnElasticLimitCountEveryAdmission) {
  const auto seed = new_seed();
  Dice dice(seed);
  for (int round = 0; round < 10'000 && !testing::Test::HasFatalFailure(); ++round) {
    const Pair pair = random_pair(dice);
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round << ": " << pair.own << " and "
                                    << pair.elastic);
    FullTable(dice, pair).go(20);
  }
}

TEST(Overflow, NewKeysOfAFullTableTogetherStayWithinTheEnforcedLimit) {
  const Limiter one = Concurrency::make(1).value();
  KeyTable table(16);
  fill(table, one);
  const Limiter own = FixedWindow::make({5, 24h}).value(), elastic = FixedWindow::make({20, 24h}).value();
  int admitted = 0;
  for (std::uint64_t client = 0; client < 100; ++client) {
    const std::array bill = {
        Charge{.key = key_of(client, 1), .limiter = &elastic, .rule = 3, .limiter_id = 1},
        Charge{.key = key_of(client, 0), .limiter = &own, .rule = 3, .enforced = false, .counted = true}};
    std::array<Outcome, 2> outcomes;
    if (!table.charge(bill, kStart, outcomes)) continue;
    ++admitted;
    if (client % 2 == 0) continue;  // the request of this client never reached a server
    table.refund(bill, kStart, outcomes, kStart);
    --admitted;
  }
  EXPECT_EQ(admitted, 20);
}

TEST(Overflow, OverflowCellOfTiersWithTwoPeriodsRefillsOnTime) {
  const Limiter one = Concurrency::make(1).value();
  KeyTable table(16);
  fill(table, one);
  const Limiter hourly = SlidingWindow::make({10, 1h}).value(), quick = SlidingWindow::make({10, 1s}).value();
  Outcome out;
  for (int i = 0; i < 5; ++i) {  // alternate between two tiers
    const Charge slow{key_of(1), &hourly, 1, 3, true, 2}, fast{key_of(2), &quick, 1, 3, true, 4};
    ASSERT_TRUE(table.charge({&slow, 1}, kStart, {&out, 1}));
    EXPECT_EQ(out.remaining, 9 - i);
    ASSERT_TRUE(table.charge({&fast, 1}, kStart, {&out, 1}));
    EXPECT_EQ(out.remaining, 9 - i);
  }
  EXPECT_TRUE(table.peek({key_of(2), &quick, 10, 3, true, 4}, kStart + 2s).allowed);
  EXPECT_TRUE(table.peek({key_of(1), &hourly, 10, 3, true, 2}, kStart + 2h).allowed);
}

// After kMostExtraCells limiter IDs have got their own overflow cells, all further IDs share the two cells of
// their rule: even IDs one cell, odd IDs the other. A limiter in other units gets the cell's count converted.
TEST(Overflow, LimitersBeyondTheMaximumNumberShareTwoOverflowCellsOfTheirRule) {
  const Limiter bucket = token_bucket("1/h", 3), slow = token_bucket("1/h", 5);
  const auto taken = [](const Limiter& limiter, const Cell& cell) {
    return step(limiter, cell, kStart, 1).outcome.remaining;
  };
  const Cell one = step(bucket, {}, kStart, 1).next;
  Overflow overflow;
  for (LimiterId limiter_id = 2; limiter_id < 2 + Overflow::kMostExtraCells; ++limiter_id)
    overflow.put(7, limiter_id, bucket, one);
  const LimiterId late = 2 + Overflow::kMostExtraCells;
  overflow.put(7, late, bucket, one);
  EXPECT_EQ(taken(bucket, overflow.cell(7, late + 2, bucket)), 1)
      << "a limiter beyond the bound had its own cell";
  EXPECT_EQ(taken(bucket, overflow.cell(7, 0, bucket)), 1);
  EXPECT_EQ(taken(slow, overflow.cell(7, late, slow)), 3)
      << "the cell was read in the units of another limiter";
  EXPECT_EQ(taken(bucket, overflow.cell(7, late + 1, bucket)), 2)
      << "both limits of an elastic rule shared a cell";
  EXPECT_EQ(taken(bucket, overflow.cell(7, 2, bucket)), 1) << "a cell was lost";
  for (std::size_t rule = 0; rule < kMaxRules; ++rule)
    for (const LimiterId limiter_id : {0U, 1U})
      overflow.put(static_cast<RuleIndex>(rule), limiter_id, bucket, one);
  std::size_t cells = 0;
  overflow.for_each([&](RuleIndex, LimiterId, const Limiter&, const Cell&) { ++cells; });
  EXPECT_EQ(cells, Overflow::kMostCells);
}

}  // namespace
}  // namespace weir::limit
