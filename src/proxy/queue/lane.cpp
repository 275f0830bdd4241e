#include "weir/proxy/lane.hpp"

namespace weir::proxy {

// The first in order that may take the first departure. Where none may yet, some departure is to spare (see
// the queue's invariants), and this is one. Departures in the order of Redis's time may lie otherwise in ours
// by what a round trip tells too little: where none is to spare after all, the lane waits for the one that
// may soonest, late but early for nobody.
Lane::Next Lane::next() noexcept {
  const auto at = departures.front().at;
  const auto soonest = held.rbegin();  // of those who are held
  const bool all_held = held_count == tickets && held_count != 0;
  if (!all_held || soonest->not_before_ <= at)
    for (auto& waiting : classes)
      for (auto& client : waiting.turns)
        for (auto& ticket : client.tickets)
          if (ticket.not_before_ <= at) return {&ticket, at};
  if (departures.size() > tickets) return {nullptr, at};
  return {&*soonest, soonest->not_before_};
}

// Clients of one priority take turns, so it is one that has the most tickets there: of those, the one whose
// turn comes last.
const LaneClient* Lane::last() const noexcept {
  for (auto waiting = classes.rbegin(); waiting != classes.rend(); ++waiting)
    if (waiting->tickets != 0) return &*waiting->by_places.rbegin();
  return nullptr;
}

// With n tickets held until t or longer, and n departures at t or later, none of these can be spared: but the
// one before t can, unless the same holds of an earlier t.
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
