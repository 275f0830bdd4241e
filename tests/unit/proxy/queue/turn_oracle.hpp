// A slow but simple model of the order in one queue. For each priority it has a list of clients, and for each
// client its tickets in order of arrival.
#pragma once

#include "weir/proxy/queue.hpp"

#include <algorithm>
#include <array>
#include <list>
#include <vector>

namespace weir::proxy {

class TurnOracle {
 public:
  void join(const Queue::Ticket* ticket) {
    auto& turns = turns_[ticket->priority()];
    auto turn =
        std::find_if(turns.begin(), turns.end(), [&](const Turn& t) { return t.client == ticket->client(); });
    if (turn == turns.end()) turn = turns.insert(turns.end(), {ticket->client(), {}});
    turn->tickets.push_back(ticket);
  }
  void leave(const Queue::Ticket* ticket) {
    for (auto& turns : turns_)
      for (auto turn = turns.begin(); turn != turns.end(); ++turn)
        if (std::erase(turn->tickets, ticket) != 0) {
          if (turn->tickets.empty()) turns.erase(turn);
          return;
        }
  }
  // Removes and returns the ticket that takes the departure at `at`. Returns null if no waiting ticket may
  // take it.
  const Queue::Ticket* depart(base::TimePoint at = base::TimePoint::max()) {
    for (auto& turns : turns_)
      for (auto turn = turns.begin(); turn != turns.end(); ++turn) {
        const auto found = first(*turn, at);
        if (found == turn->tickets.end()) continue;
        const auto* ticket = *found;
        turn->tickets.erase(found);
        if (!turn->tickets.empty()) turns.push_back(*turn);
        turns.erase(turn);
        return ticket;
      }
    return nullptr;
  }
  // Returns true if a waiting ticket may depart at `at`.
  [[nodiscard]] bool may_depart(base::TimePoint at) const {
    auto copy = *this;
    return copy.depart(at) != nullptr;
  }
  // Returns the ticket that would depart last if no more tickets joined.
  [[nodiscard]] const Queue::Ticket* last() const {
    auto copy = *this;
    const Queue::Ticket* found = nullptr;
    while (const auto* next = copy.depart()) found = next;
    return found;
  }

 private:
  struct Turn {
    limit::Key client;
    std::vector<const Queue::Ticket*> tickets;
  };
  static std::vector<const Queue::Ticket*>::iterator first(Turn& turn, base::TimePoint at) {
    return std::find_if(turn.tickets.begin(), turn.tickets.end(),
                        [&](const Queue::Ticket* ticket) { return ticket->not_before() <= at; });
  }
  std::array<std::list<Turn>, policy::kPriorities> turns_;
};

}  // namespace weir::proxy
