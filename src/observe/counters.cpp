#include "weir/observe/counters.hpp"

#include <cassert>

namespace weir::observe {

Counters::Counters(const Shape& shape) {
  make_room(shape);
}

void Counters::make_room(const Shape& shape) {
  assert(shape.routes <= kMostRoutes && shape.rules <= limit::kMaxRules && shape.upstreams <= kMostUpstreams);
  routes_.grow_to(shape.routes);
  rules_.grow_to(shape.rules);
  upstreams_.grow_to(shape.upstreams);
}

void Counters::add_requests(std::optional<std::size_t> route, StatusSums& sums) const noexcept {
  const auto& row = row_of(route);
  for (std::size_t slot = 0; slot < kStatusSlots; ++slot) sums[slot] += row[slot].value();
}

void Counters::clear_route(std::size_t route) noexcept {
  for (auto& tally : routes_[route].statuses) tally.clear();
  routes_[route].seconds.clear();
}

void Counters::clear_rule(limit::RuleIndex rule) noexcept {
  auto& tallies = rules_[rule];
  for (auto& tally : tallies.decisions) tally.clear();
  for (auto& tally : tallies.settlements) tally.clear();
  for (auto& tally : tallies.messages) tally.clear();
  tallies.denied_here.clear();
  tallies.penalties.clear();
  tallies.bandwidth_waited.clear();
  if (top) top->forget(rule);
  refused_clients->forget(rule);
}

void Counters::clear_upstream(std::size_t upstream) noexcept {
  auto& tallies = upstreams_[upstream];
  for (auto* tally : {&tallies.connects, &tallies.failures, &tallies.errors, &tallies.oversized,
                      &tallies.reused, &tallies.prompted, &tallies.retries, &tallies.queued, &tallies.crowded,
                      &tallies.denied, &tallies.attempts, &tallies.attempts_failed, &tallies.paused})
    tally->clear();
  tallies.seconds.clear();
}

}  // namespace weir::observe
