#include "weir/proxy/queue.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <numeric>

namespace weir::proxy {

// Workers join a moment after they were promised, so the newest nearly always goes to the end.
void Queue::add(Lane& lane, const Departure& departure) {
  const auto later = [](const Departure& a, const Departure& b) { return a.promised < b.promised; };
  auto& all = lane.departures;
  all.insert(std::upper_bound(all.begin(), all.end(), departure, later), departure);
  if (lane.places == 0 && departure.shared_places != 0) shared_.push_back(lane);
  lane.places = departure.shared_places;
}

std::size_t Queue::count(const Lane& lane) noexcept {
  return std::accumulate(lane.tickets.begin(), lane.tickets.end(), std::size_t{0});
}

// The first in order that may take the first departure. Where none may yet, the lane waits for the one that
// may soonest: late, but early for nobody. REQUIRES a departure.
Queue::Next Queue::next(Lane& lane) noexcept {
  const auto at = lane.departures.front().at;
  Next soonest{nullptr, at};
  for (auto& clients : lane.turns) {
    for (auto& client : clients) {
      auto& ticket = client.tickets.front();
      if (ticket.not_before_ <= at) return {&ticket, at};
      if (soonest.ticket == nullptr || ticket.not_before_ < soonest.at)
        soonest = {&ticket, ticket.not_before_};
    }
  }
  return soonest;
}

void Queue::reschedule(const limit::Key& key, Lane& lane) {
  const auto [ticket, due] = lane.departures.empty() ? Next{nullptr, base::TimePoint::max()} : next(lane);
  const Worker keeper = ticket != nullptr ? ticket->worker_ : lane.keeper;
  if (keeper != lane.keeper || due != lane.due) {
    if (lane.due != base::TimePoint::max()) due_[lane.keeper].erase({lane.due, key});
    if (due != base::TimePoint::max()) due_[keeper].emplace(due, key);
    lane.keeper = keeper;
    lane.due = due;
  }
  if (!lane.departures.empty()) return;
  if (lane.places != 0) shared_.erase(shared_.iterator_to(lane));
  lanes_.erase(lanes_.find(key));
}

void Queue::join(Ticket& ticket, const Departure& departure) {
  assert(!ticket.waits());
  const auto& key = departure.charge.key;
  auto& lane = lanes_[key];
  const auto [place, is_new] = lane.clients.try_emplace({ticket.client_, ticket.priority_});
  auto& client = place->second;
  client.tickets.push_back(ticket);
  ++client.count;
  if (is_new) lane.turns[ticket.priority_].push_back(client);
  ++lane.tickets[ticket.priority_];
  ++waiting_[ticket.priority_];
  ++size_;
  note_worst();
  ticket.lane_ = &lane;
  ticket.place_ = &client;
  ticket.departure_ = departure;
  add(lane, departure);
  reschedule(key, lane);
}

// A client that had its turn goes behind the others; one whose ticket left keeps its place.
void Queue::take_out(Ticket& ticket, bool had_its_turn) {
  auto& lane = *ticket.lane_;
  auto& client = *ticket.place_;
  auto& turns = lane.turns[ticket.priority_];
  client.tickets.erase(client.tickets.iterator_to(ticket));
  --client.count;
  if (client.count == 0) {
    turns.erase(turns.iterator_to(client));
    lane.clients.erase({ticket.client_, ticket.priority_});
  } else if (had_its_turn) {
    turns.splice(turns.end(), turns, turns.iterator_to(client));
  }
  --lane.tickets[ticket.priority_];
  --waiting_[ticket.priority_];
  --size_;
  note_worst();
  ticket.lane_ = nullptr;
  ticket.place_ = nullptr;
}

void Queue::leave(Ticket& ticket) {
  assert(ticket.waits());
  auto& lane = *ticket.lane_;
  const auto key = ticket.departure_.charge.key;
  take_out(ticket, false);
  reschedule(key, lane);
}

void Queue::note_worst() noexcept {
  const auto worst = std::find_if(waiting_.rbegin(), waiting_.rend(), [](std::size_t n) { return n != 0; });
  worst_.store(static_cast<int>(waiting_.rend() - worst) - 1, std::memory_order_relaxed);
}

// Clients of one priority take turns, so the last to depart is of one that has the most tickets there: of
// those clients, the one whose turn comes last. Null where nobody waits.
Queue::Ticket* Queue::last(Lane& lane) noexcept {
  for (auto turns = lane.turns.rbegin(); turns != lane.turns.rend(); ++turns) {
    if (turns->empty()) continue;
    const auto fewer = [](const Client& a, const Client& b) { return a.count < b.count; };
    return &std::max_element(turns->rbegin(), turns->rend(), fewer)->tickets.back();
  }
  return nullptr;
}

bool Queue::has_place_for(const limit::Key& key, policy::Priority priority, limit::Cost cost) const {
  const auto found = lanes_.find(key);
  if (found == lanes_.end()) return false;
  const auto& lane = found->second;
  const auto& departure = lane.departures.back();
  if (departure.in_redis || departure.charge.cost < cost) return false;
  if (lane.departures.size() > count(lane)) return true;
  return std::any_of(lane.tickets.begin() + priority + 1, lane.tickets.end(),
                     [](std::size_t waiting) { return waiting != 0; });
}

Departure Queue::displace(const limit::Key& key, base::TimePoint retry_at) {
  auto& lane = lanes_.at(key);
  if (lane.departures.size() == count(lane)) {
    auto& loser = *last(lane);
    loser.retry_at_ = retry_at;
    evict(loser, Eviction::Displaced);
  }
  const auto departure = lane.departures.back();
  lane.departures.pop_back();
  reschedule(key, lane);
  return departure;
}

void Queue::evict(Ticket& ticket, Eviction why) {
  take_out(ticket, false);
  ticket.eviction_ = why;
  evicted_[ticket.worker_].push_back(ticket);
}

void Queue::evict_overtaken(const limit::Key& key) {
  auto& lane = lanes_.at(key);
  bool any = false;
  for (auto* ticket = last(lane); ticket != nullptr; ticket = last(lane)) {
    if (lane.departures[count(lane) - 1].at <= ticket->deadline_) break;
    evict(*ticket, Eviction::Overtaken);
    any = true;
  }
  if (any) reschedule(key, lane);
}

Queue::Ticket* Queue::take_evicted(Worker worker) {
  auto& evicted = evicted_[worker];
  if (evicted.empty()) return nullptr;
  auto& ticket = evicted.front();
  evicted.pop_front();
  return &ticket;
}

void Queue::forget(Ticket& ticket) noexcept {
  auto& evicted = evicted_[ticket.worker_];
  if (ticket.is_linked()) evicted.erase(evicted.iterator_to(ticket));
}

void Queue::offer(const Departure& departure, Worker keeper) {
  const auto& key = departure.charge.key;
  const auto [lane, is_new] = lanes_.try_emplace(key);
  if (is_new) lane->second.keeper = keeper;
  add(lane->second, departure);
  reschedule(key, lane->second);
}

const Departure* Queue::surplus(const limit::Key& key) const {
  const auto lane = lanes_.find(key);
  if (lane == lanes_.end() || lane->second.departures.size() == count(lane->second)) return nullptr;
  return &lane->second.departures.back();
}

void Queue::drop_surplus(const limit::Key& key) {
  auto& lane = lanes_.at(key);
  assert(lane.departures.size() > count(lane));
  lane.departures.pop_back();
  reschedule(key, lane);
}

base::TimePoint Queue::next_due(Worker worker) const noexcept {
  const auto& due = due_[worker];
  return due.empty() ? base::TimePoint::max() : due.begin()->first;
}

Queue::Ticket* Queue::take_due(Worker worker, base::TimePoint now) {
  const auto& due = due_[worker];
  while (!due.empty() && due.begin()->first <= now) {
    const auto key = due.begin()->second;
    auto& lane = lanes_.at(key);
    auto* const ticket = next(lane).ticket;  // null: nobody came for it, and its time is over
    if (ticket != nullptr) {
      take_out(*ticket, true);
      ticket->departure_ = lane.departures.front();
    }
    lane.departures.pop_front();
    reschedule(key, lane);
    if (ticket != nullptr) return ticket;
  }
  return nullptr;
}

double Queue::fullness() const noexcept {
  double fullest = 0;
  for (const auto& lane : shared_)
    fullest = std::max(fullest, static_cast<double>(count(lane)) / static_cast<double>(lane.places));
  return fullest;
}

std::size_t Queue::waiting(const limit::Key& key, const limit::Key& client) const {
  const auto lane = lanes_.find(key);
  if (lane == lanes_.end()) return 0;
  const auto& clients = lane->second.clients;
  std::size_t found = 0;
  for (auto it = clients.lower_bound({client, 0}); it != clients.end() && it->first.first == client; ++it)
    found += it->second.count;
  return found;
}

// Those of higher priorities go first, then one of each client whose turn comes before.
base::TimePoint Queue::next_turn(const limit::Key& key, const limit::Key& client) const {
  const auto& lane = lanes_.at(key);
  std::size_t before = 0;
  for (policy::Priority priority = 0; priority < policy::kPriorities; ++priority) {
    if (const auto own = lane.clients.find({client, priority}); own != lane.clients.end()) {
      const auto& turns = lane.turns[priority];
      before += static_cast<std::size_t>(std::distance(turns.begin(), turns.iterator_to(own->second)));
      break;
    }
    before += lane.tickets[priority];
  }
  assert(before < lane.departures.size());
  return lane.departures[before].at;
}

}  // namespace weir::proxy
