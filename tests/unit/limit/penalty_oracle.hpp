// A model of penalties that keeps a list of everything that ever happened to a key. The model follows the
// text of the documentation (docs/limiters.md, "Penalties"), which the comments below quote.
#pragma once

#include "unit/limit/random_case.hpp"

#include "weir/limit/penalty.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace weir::limit {

class PenaltyOracle {
 public:
  explicit PenaltyOracle(const Penalty& penalty) : penalty_(penalty) {}

  // Returns how long the penalty still lasts. The documentation: "Until it ends, the rule refuses every
  // request of the key."
  [[nodiscard]] Duration left(TimePoint now) const {
    Duration left{0};
    for (const auto& [begin, end] : penalties_) left = std::max(left, end - now);
    return left;
  }
  // Records a refusal by the limiter. Returns true if a penalty begins. The documentation: "A refusal by the
  // rule's limiter is a violation", but not while a penalty runs.
  bool refused_by_limiter(TimePoint now) {
    if (left(now) > 0us) return false;
    ++since_penalty_;
    violations_.push_back(now);
    if (counted(now) < penalty_.after) return false;
    const auto earlier = std::count_if(penalties_.begin(), penalties_.end(),
                                       [&](const auto& one) { return within_forget(one.begin, now); });
    const auto length = static_cast<long double>(penalty_.first.count()) *
                        std::pow(static_cast<long double>(penalty_.grows), earlier);
    const auto most = static_cast<long double>(penalty_.most.count());
    penalties_.push_back({now, now + Duration(std::llround(std::min(length, most)))});
    since_penalty_ = 0;
    return true;
  }
  // Returns how many violations within `forget` came after the last penalty began.
  [[nodiscard]] std::size_t counted(TimePoint now) const {
    return static_cast<std::size_t>(std::count_if(violations_.end() - since_penalty_, violations_.end(),
                                                  [&](TimePoint at) { return within_forget(at, now); }));
  }
  [[nodiscard]] std::size_t penalties() const { return penalties_.size(); }

 private:
  struct Interval {
    TimePoint begin, end;
  };
  [[nodiscard]] bool within_forget(TimePoint at, TimePoint now) const { return at + penalty_.forget > now; }

  Penalty penalty_;
  std::vector<TimePoint> violations_;
  std::vector<Interval> penalties_;
  std::ptrdiff_t since_penalty_ = 0;  // violations since the last penalty began
};

// Returns a penalty with random numbers. Its durations are so short that even a short history reaches all of
// them.
inline Penalty any_penalty(Dice& dice) {
  static constexpr std::array<std::uint32_t, 5> kGrows = {1, 2, 2, 3, kMostGrowth};
  Penalty penalty;
  penalty.after = dice.one_in(3) ? 1 : static_cast<std::uint32_t>(dice.between(1, 4));
  penalty.first = Duration(dice.between(1'000'000, 20'000'000));
  penalty.grows = dice.one_of(kGrows);
  penalty.most = penalty.first * dice.between(1, 9);
  penalty.forget = Duration(dice.between(1'000'000, 200'000'000));
  return penalty;
}

// Random requests of a few clients under two rules with penalties, and the expected outcome of each request.
class PenaltyHistory {
 public:
  struct Line {
    Charge charge;
    Outcome expected;
  };
  struct Request {
    std::vector<Line> lines;
    bool admitted = false;
  };

  PenaltyHistory(Dice& dice, std::uint64_t number) : dice_(dice), number_(number) {
    for (auto& rule : rules_) rule.penalty = any_penalty(dice);
  }

  // Returns the next request, at `now`, with its expected outcomes.
  Request ask(TimePoint now) {
    Request request;
    request.admitted = true;
    const auto client = dice_.between(0, 1);
    const auto only = dice_.between(0, 3);  // 0 or 1: this rule alone; 2 or 3: both rules
    for (std::size_t i = 0; i < rules_.size(); ++i)
      if (only > 1 || only == i) request.lines.push_back(line(client, i, now));
    for (const auto& [charge, expected] : request.lines)
      request.admitted = request.admitted && (expected.allowed || !charge.enforced);
    for (const auto& [charge, expected] : request.lines)
      if (request.admitted && expected.allowed)
        keys_[index_of(client, charge.rule)].cell = nexts_[charge.rule];
    return request;
  }
  // Returns a time until the next request.
  Duration pause() {
    switch (dice_.between(0, 3)) {
      case 0:
        return 0us;
      case 1:
        return Duration(dice_.between(1, 3'000'000));
      case 2:
        return Duration(dice_.between(1, 30'000'000));
      default:
        return dice_.one_in(4) ? rules_[0].penalty.forget : rules_[dice_.between(0, 1)].penalty.first;
    }
  }
  [[nodiscard]] std::size_t penalties() const {
    std::size_t all = 0;
    for (const auto& key : keys_) all += key.oracle ? key.oracle->penalties() : 0;
    return all;
  }

 private:
  struct Rule {
    Penalty penalty{};
    Limiter limiter = token_bucket("1/2s", 2);
  };
  struct KeyState {
    Cell cell{};
    std::optional<PenaltyOracle> oracle{};
  };
  static std::size_t index_of(std::uint64_t client, std::size_t rule) { return client * 2 + rule; }

  Line line(std::uint64_t client, std::size_t index, TimePoint now) {
    auto& rule = rules_[index];
    auto& key = keys_[index_of(client, index)];
    if (!key.oracle) key.oracle.emplace(rule.penalty);
    Line line{.charge = {key_of(number_ * 2 + client, static_cast<RuleIndex>(index)), &rule.limiter,
                         dice_.between(1, 3), static_cast<RuleIndex>(index), !dice_.one_in(4)},
              .expected = {}};
    line.charge.penalty = &rule.penalty;
    const auto step = limit::step(rule.limiter, key.cell, now, line.charge.cost);
    nexts_[index] = step.next;
    auto& expected = line.expected = step.outcome;
    if (!expected.allowed) expected.penalty_begins = key.oracle->refused_by_limiter(now);
    const auto left = key.oracle->left(now);
    if (left > 0us) {
      expected.allowed = false;
      expected.remaining = 0;
      expected.penalty_left = left;
      expected.retry_after = std::max(expected.retry_after, left);
      expected.more_after = std::max(expected.more_after, expected.retry_after);
      expected.reset_after = std::max(expected.reset_after, left);
    } else {
      expected.violations = static_cast<std::uint8_t>(key.oracle->counted(now));
    }
    return line;
  }

  Dice& dice_;
  std::uint64_t number_;
  std::array<Rule, 2> rules_{Rule{}, Rule{{}, *FixedWindow::make({3, 10s})}};
  std::array<KeyState, 4> keys_{};
  std::array<Cell, 2> nexts_{};
};

}  // namespace weir::limit
