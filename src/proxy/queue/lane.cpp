#include "weir/proxy/lane.hpp"

namespace weir::proxy {

// Returns the first ticket in order that may take the lane's first departure. If no ticket may take it yet,
// the result depends on whether the lane has a surplus departure:
// * With a surplus, the first departure stays unused, and the result has no ticket. This is the usual case
//   (see the invariants in queue.hpp).
// * Without a surplus, returns the ticket with the earliest not_before. This ticket takes the first departure
//   as soon as it may depart. This case exists only because weir orders departures by Redis's clock: a round
//   trip adds an error, so by this weir's clock the order may be wrong.
Lane::Next Lane::next() noexcept {
  const auto at = departures.front().at;
  const auto soonest = held.rbegin();  // the ticket with the earliest not_before
  const bool all_held = held_count == tickets && held_count != 0;
  if (!all_held || soonest->not_before_ <= at)
    for (auto& waiting : classes)
      for (auto& client : waiting.turns)
        for (auto& ticket : client.tickets)
          if (ticket.not_before_ <= at) return {&ticket, at};
  if (departures.size() > tickets) return {nullptr, at};
  return {&*soonest, soonest->not_before_};
}

// Clients of one priority take turns, so the last ticket belongs to a client with the most tickets. If
// several clients have equally many, the last ticket belongs to the client whose turn comes last.
const LaneClient* Lane::last() const noexcept {
  for (auto waiting = classes.rbegin(); waiting != classes.rend(); ++waiting)
    if (waiting->tickets != 0) return &*waiting->by_tickets.rbegin();
  return nullptr;
}

// Returns the index of the last departure that no ticket needs. `but`: a ticket to ignore.
//
// Each ticket needs a departure at its not_before or later. Suppose that n tickets have a not_before of t or
// later, and that exactly n departures are at t or later. Then these tickets need all n departures. The
// function finds the earliest such t, and returns the last departure before t. If there is no such t, it
// returns the lane's last departure.
std::size_t Lane::spare(const QueueTicket* but) const noexcept {
  std::size_t found = departures.size() - 1;
  std::size_t longer = 0;
  for (const auto& ticket : held) {
    if (&ticket == but) continue;
    const std::size_t before = departures.size() - 1 - ++longer;
    if (departures[before].at < ticket.not_before_) found = before;
  }
  return found;
}

const Departure* Lane::surplus() const noexcept {
  if (departures.size() <= tickets || spare() + 1 != departures.size()) return nullptr;
  return &departures.back();
}

}  // namespace weir::proxy
