#include "weir/limit/limiter.hpp"

#include "limit/algorithms/arithmetic.hpp"

#include <algorithm>
#include <concepts>
#include <type_traits>

namespace weir::limit {

namespace {

template <class L>
concept Paced = requires(const L& limiter) {
  { limiter.gcra_core() } -> std::same_as<const GcraCore&>;
};
template <class L>
concept Holding = std::same_as<L, Concurrency> || std::same_as<L, AdaptiveConcurrency>;

struct Refund {
  const Cell& cell;
  base::TimePoint departure;
  Cost cost;

  template <Paced L>
  Cell operator()(const L& l) const noexcept {
    return cell_of(l.gcra_core().refund(tat_of(cell), cost));
  }
  Cell operator()(const LeakyBucket& l) const noexcept { return l.withdraw(cell, departure, cost); }
  Cell operator()(const SteppedBucket& l) const noexcept { return l.refund(cell, cost); }
  Cell operator()(const Concurrency& l) const noexcept { return l.release(cell, cost); }
  Cell operator()(const AdaptiveConcurrency& l) const noexcept {
    return l.release(cell, departure, cost, {});
  }
  template <class L>
  Cell operator()(const L& l) const noexcept {
    return l.refund(cell, departure, cost);
  }
};

}  // namespace

Step step(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost) noexcept {
  return std::visit([&](const auto& l) { return l.step(cell, now, cost); }, limiter);
}

Cell refund(const Limiter& limiter, const Cell& cell, base::TimePoint departure, Cost cost) noexcept {
  return std::visit(Refund{cell, departure, cost}, limiter);
}

bool holds(const Limiter& limiter) noexcept {
  return std::holds_alternative<Concurrency>(limiter) || std::holds_alternative<AdaptiveConcurrency>(limiter);
}

std::uint64_t in_flight(const Limiter& limiter, const Cell& cell) noexcept {
  if (const auto* fixed = std::get_if<Concurrency>(&limiter)) return fixed->in_flight(cell);
  if (const auto* adaptive = std::get_if<AdaptiveConcurrency>(&limiter)) return adaptive->in_flight(cell);
  return 0;
}

Cell release(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost,
             const Ending& ending) noexcept {
  if (const auto* fixed = std::get_if<Concurrency>(&limiter)) return fixed->release(cell, cost);
  if (const auto* adaptive = std::get_if<AdaptiveConcurrency>(&limiter))
    return adaptive->release(cell, now, cost, ending);
  return cell;
}

namespace {

// Returns true if both limiters count in the same windows or time steps, whatever their limits. Then both can
// use a state as it is. A conversion to the other limiter and back could change the state.
bool count_alike(const SlidingWindow& a, const SlidingWindow& b) noexcept {
  return a.rate().period == b.rate().period;
}
bool count_alike(const SlidingLog& a, const SlidingLog& b) noexcept {
  return a.rate().period == b.rate().period && a.marks() == b.marks();
}
template <class L>
bool count_alike(const L&, const L&) noexcept {
  return false;
}

template <class L>
Cell converted(const L& from, const Cell& cell, base::TimePoint drained_at, const L& to) noexcept {
  return count_alike(from, to) ? cell : to.carry_over(cell, drained_at);
}

}  // namespace

Cell carry_over(const Limiter& from, const Cell& cell, const Limiter& to) noexcept {
  const auto at = drained_at(from, cell);
  const bool same = from.index() == to.index();
  return std::visit(
      [&]<class L>(const L& l) -> Cell {
        if constexpr (Paced<L>)
          return gcra_core(from) != nullptr ? cell_of(l.gcra_core().ticks(at)) : Cell{};
        else if constexpr (Holding<L>)
          return same ? cell : Cell{};
        else
          return same ? converted(std::get<L>(from), cell, at, l) : Cell{};
      },
      to);
}

base::TimePoint drained_at(const Limiter& limiter, const Cell& cell) noexcept {
  return std::visit(
      [&]<class L>(const L& l) {
        if constexpr (Paced<L>)
          return l.gcra_core().instant(tat_of(cell));
        else
          return l.drained_at(cell);
      },
      limiter);
}

const GcraCore* gcra_core(const Limiter& limiter) noexcept {
  return std::visit(
      []<class L>(const L& l) -> const GcraCore* {
        if constexpr (Paced<L>)
          return &l.gcra_core();
        else
          return nullptr;
      },
      limiter);
}

std::uint64_t quota(const Limiter& limiter) noexcept {
  return std::visit([](const auto& l) { return l.quota(); }, limiter);
}

base::Duration window(const Limiter& limiter) noexcept {
  return std::visit(
      []<class L>(const L& l) {
        if constexpr (Paced<L>)
          return l.gcra_core().window();
        else if constexpr (Holding<L>)
          return base::Duration{0};
        else
          return l.window();
      },
      limiter);
}

base::Duration longest_wait(const Limiter& limiter) noexcept {
  const auto* queue = std::get_if<LeakyBucket>(&limiter);
  return queue != nullptr ? queue->gcra_core().max_wait() : base::kForever;
}

// A request waits for at most max_wait, so no more requests can wait than depart within that time. Requests
// of the same cost depart at intervals of cost × T, where T is the interval of one unit.
std::uint64_t most_waiting(const Limiter& limiter, Cost cost) noexcept {
  const auto* queue = std::get_if<LeakyBucket>(&limiter);
  if (queue == nullptr) return 0;
  const auto& gcra_core = queue->gcra_core();
  if (gcra_core.max_wait() == base::kForever) return queue->quota();
  const Ticks departures = Ticks{micros(gcra_core.max_wait())} * gcra_core.rate().count /
                           (Ticks{std::max<Cost>(cost, 1)} * micros(gcra_core.rate().period));
  return static_cast<std::uint64_t>(std::min(Ticks{queue->quota()}, std::max(departures, Ticks{1})));
}

}  // namespace weir::limit
