// Who spends most of each rule, and who is refused most, at the moment: one worker's share of it.
//
// Of each rule two Space-Saving summaries (space_saving.hpp), by admitted and by refused cost, in two
// generations: what is counted now, and what was before. A generation ends after kGeneration, so what is told
// is of the last one to two of them.
//
// The worker's thread writes, once a request, and the admin's thread reads, behind a mutex that hardly ever
// has to wait: a reader copies one rule's counters at a time. A rule's memory is claimed at the first request
// that meets it.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/observe/space_saving.hpp"
#include "weir/policy/client_text.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

namespace weir::observe {

// Of one rule, of one worker or of several together.
struct TopOfRule {
  SpaceSaving admitted, refused;
  base::TimePoint since{};  // what came before is not in it
};

class TopClients {
 public:
  static constexpr base::Duration kGeneration = std::chrono::seconds(60);

  // `capacity`: counters of each summary; 0: nothing is counted.
  explicit TopClients(std::size_t capacity) noexcept : capacity_(capacity) {}
  TopClients(const TopClients&) = delete;
  TopClients& operator=(const TopClients&) = delete;

  [[nodiscard]] bool is_on() const noexcept { return capacity_ != 0; }

  // For the worker: all that one request adds, under one lock.
  class Writing {
   public:
    Writing(TopClients& top, base::TimePoint now) : top_(top), now_(now), lock_(top.mutex_) {}
    // Adds the cost of `charge`. Its key is the name that people are shown.
    void add(const policy::Rule& rule, const limit::Charge& charge, bool admitted,
             const policy::Request& request) {
      auto& of_rule = top_.current(rule.index, now_);
      auto& summary = admitted ? of_rule.admitted : of_rule.refused;
      const auto write = [&](std::span<char> room) {
        return policy::write_client(room, rule.key, request).size();
      };
      summary.add(charge.key, charge.cost, write, charge.ledger);
    }

   private:
    TopClients& top_;
    base::TimePoint now_;
    std::lock_guard<std::mutex> lock_;
  };

  // By a rule's label (Rule::index). Any thread. Adds what this worker knows to `all`; nothing where it has
  // not met the rule lately.
  void read(limit::RuleIndex rule, base::TimePoint now, std::optional<TopOfRule>& all) const;
  // The index stands for another rule from now on. Any thread.
  void forget(limit::RuleIndex label);
  // Claimed, in bytes. Any thread.
  [[nodiscard]] std::size_t memory() const;

 private:
  struct Generations {
    explicit Generations(std::size_t capacity)
        : now{SpaceSaving(capacity), SpaceSaving(capacity)},
          before{SpaceSaving(capacity), SpaceSaving(capacity)} {}
    TopOfRule now, before;
  };

  [[nodiscard]] TopOfRule& current(limit::RuleIndex rule, base::TimePoint now) {
    auto& generations = rules_[rule];
    if (!generations || now - generations->now.since >= kGeneration) [[unlikely]]
      turn(generations, now);
    return generations->now;
  }
  void turn(std::unique_ptr<Generations>& generations, base::TimePoint now);

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::array<std::unique_ptr<Generations>, limit::kMaxRules> rules_;
};

}  // namespace weir::observe
