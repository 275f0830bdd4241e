// For each rule: the clients that spend the most units, and the clients that are refused the most, as one
// worker sees them.
//
// Each rule has two Space-Saving summaries (space_saving.hpp), one of admitted and one of refused cost. Each
// summary exists in two generations, the current one and the previous one. A generation lasts for
// kGeneration, so results cover the last one to two generations.
//
// The worker's thread writes once a request, and the admin thread reads. Both threads lock a mutex. They
// rarely wait for the mutex, because a reader copies one rule's counters at a time. The memory of a rule is
// allocated at the rule's first request.
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

// The summaries of one rule, from one worker or from several workers together.
struct TopOfRule {
  SpaceSaving admitted, refused;
  base::TimePoint since{};  // the start of the summaries, which do not include earlier requests
};

class TopClients {
 public:
  static constexpr base::Duration kGeneration = std::chrono::seconds(60);

  // `capacity`: the number of counters in each summary; 0 disables the summaries.
  explicit TopClients(std::size_t capacity) noexcept : capacity_(capacity) {}
  TopClients(const TopClients&) = delete;
  TopClients& operator=(const TopClients&) = delete;

  [[nodiscard]] bool is_on() const noexcept { return capacity_ != 0; }

  // Adds all costs of one request, under one lock. Used by the worker.
  class Writer {
   public:
    Writer(TopClients& top, base::TimePoint now) : top_(top), now_(now), lock_(top.mutex_) {}
    // Adds the cost of `charge`. REQUIRES: charge.key is the name that logs and admin pages show.
    void add(const policy::Rule& rule, const limit::Charge& charge, bool admitted,
             const policy::Request& request) {
      auto& of_rule = top_.current(rule.index, now_);
      auto& summary = admitted ? of_rule.admitted : of_rule.refused;
      const auto write = [&](std::span<char> room) {
        return policy::write_client(room, rule.key, request).size();
      };
      summary.add(charge.key, charge.cost, write, charge.limiter_id);
    }

   private:
    TopClients& top_;
    base::TimePoint now_;
    std::lock_guard<std::mutex> lock_;
  };

  // Adds this worker's summaries of a rule to `all`. `rule`: the rule's index (Rule::index). Adds nothing if
  // no request in the last two generations was charged to the rule. Thread-safe.
  void read(limit::RuleIndex rule, base::TimePoint now, std::optional<TopOfRule>& all) const;
  // Clears the summaries of an index, because another rule uses the index from now on. Thread-safe.
  void forget(limit::RuleIndex index);
  // Returns the allocated memory, in bytes. Thread-safe.
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
