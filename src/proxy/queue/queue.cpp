#include "weir/proxy/queue.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace weir::proxy {

Lane& Queue::lane_of(const limit::Key& key, Worker keeper) {
  const auto [place, is_new] = lanes_.try_emplace(key);
  auto& lane = place->second;
  if (is_new) lane.key = key, lane.keeper = keeper;
  return lane;
}

// Adds the departure to the lane, in the order in which the stores promised the departures. A ticket joins
// shortly after its departure was promised, so the new departure nearly always belongs at the end.
void Queue::add(Lane& lane, const Departure& departure) {
  const auto later = [](const Departure& a, const Departure& b) { return a.promised < b.promised; };
  auto& all = lane.departures;
  all.insert(std::upper_bound(all.begin(), all.end(), departure, later), departure);
  if (lane.max_waiting == 0 && departure.shared_max_waiting != 0) shared_.push_back(lane);
  lane.max_waiting = departure.shared_max_waiting;
}

// Removes the lane if memory ran out before the lane got its first departure.
void Queue::remove_unused(Lane& lane) noexcept {
  if (lane.departures.empty()) lanes_.erase(lanes_.find(lane.key));
}

void Queue::reschedule(Lane& lane) noexcept {
  const auto [ticket, due] =
      lane.departures.empty() ? Lane::Next{nullptr, base::TimePoint::max()} : lane.next();
  const Worker keeper = ticket != nullptr ? ticket->worker_ : lane.keeper;
  if (keeper != lane.keeper || due != lane.due) {
    if (lane.due != base::TimePoint::max()) due_[lane.keeper].erase(due_[lane.keeper].iterator_to(lane));
    lane.keeper = keeper;
    lane.due = due;
    if (due != base::TimePoint::max()) due_[keeper].insert(lane);
  }
  if (!lane.departures.empty()) return;
  if (lane.max_waiting != 0) shared_.erase(shared_.iterator_to(lane));
  lanes_.erase(lanes_.find(lane.key));
}

void Queue::join(Ticket& ticket, const Departure& departure) {
  assert(!ticket.waits());
  auto& lane = lane_of(departure.charge.key, ticket.worker_);
  const std::pair name{ticket.client_, ticket.priority_};
  try {
    auto& client = lane.clients.try_emplace(name).first->second;
    add(lane, departure);
    ticket.departure_ = departure;
    add_ticket(ticket, lane, client);
  } catch (...) {
    if (const auto own = lane.clients.find(name); own != lane.clients.end() && own->second.count == 0)
      lane.clients.erase(own);
    remove_unused(lane);
    throw;
  }
  reschedule(lane);
}

void Queue::add_ticket(Ticket& ticket, Lane& lane, LaneClient& client) noexcept {
  const auto priority = ticket.priority_;
  auto& waiting = lane.classes[priority];
  if (client.count == 0) {
    client.turn = ++turns_;
    waiting.turns.push_back(client);
  } else {
    waiting.by_tickets.erase(waiting.by_tickets.iterator_to(client));
  }
  client.tickets.push_back(ticket);
  if (++client.count == 2) ++clients_with_several_[priority];
  waiting.by_tickets.insert(client);
  if (ticket.not_before_ != base::TimePoint{}) {
    lane.held.insert(ticket);
    ++lane.held_count;
  }
  ++waiting.tickets;
  ++lane.tickets;
  lane.cost += ticket.departure_.charge.cost;
  ++waiting_[priority];
  ++size_;
  note_yielding();
  ticket.lane_ = &lane;
  ticket.lane_client_ = &client;
}

// Removes the ticket from its lane. `departs`: true if the ticket departs. In that case the ticket's
// client has its next turn after all other clients. Otherwise the client keeps its turn.
void Queue::take_out(Ticket& ticket, bool departs) noexcept {
  auto& lane = *ticket.lane_;
  auto& client = *ticket.lane_client_;
  auto& waiting = lane.classes[ticket.priority_];
  waiting.by_tickets.erase(waiting.by_tickets.iterator_to(client));
  client.tickets.erase(client.tickets.iterator_to(ticket));
  if (--client.count == 1) --clients_with_several_[ticket.priority_];
  if (client.count == 0) {
    waiting.turns.erase(waiting.turns.iterator_to(client));
    lane.clients.erase({ticket.client_, ticket.priority_});
  } else {
    if (departs) {
      waiting.turns.splice(waiting.turns.end(), waiting.turns, waiting.turns.iterator_to(client));
      client.turn = ++turns_;
    }
    waiting.by_tickets.insert(client);
  }
  if (ticket.not_before_ != base::TimePoint{}) {
    lane.held.erase(lane.held.iterator_to(ticket));
    --lane.held_count;
  }
  --waiting.tickets;
  --lane.tickets;
  lane.cost -= ticket.departure_.charge.cost;
  --waiting_[ticket.priority_];
  --size_;
  note_yielding();
  ticket.lane_ = nullptr;
  ticket.lane_client_ = nullptr;
}

void Queue::leave(Ticket& ticket) noexcept {
  assert(ticket.waits());
  auto& lane = *ticket.lane_;
  take_out(ticket, false);
  reschedule(lane);
}

void Queue::note_yielding() noexcept {
  const auto found = std::find_if(waiting_.rbegin(), waiting_.rend(), [](std::size_t n) { return n != 0; });
  const auto worst = static_cast<int>(waiting_.rend() - found) - 1;
  const bool crowded = worst >= 0 && clients_with_several_[static_cast<std::size_t>(worst)] != 0;
  yields_to_.store(crowded ? worst : worst - 1, std::memory_order_relaxed);
}

// Returns true if the lane's last ticket gives way to the newcomer. If the priorities are equal, the
// ticket gives way only if its client has at least two waiting requests more than the newcomer's client.
bool Queue::gives_way(const Lane& lane, const Newcomer& newcomer) {
  const auto* most = lane.last();
  if (most == nullptr) return false;
  const auto priority = most->tickets.back().priority();
  if (priority != newcomer.priority) return priority > newcomer.priority;
  const auto own = lane.clients.find({newcomer.client, newcomer.priority});
  const std::size_t places = own != lane.clients.end() ? own->second.count : 0;
  return most->count >= places + 2;
}

bool Queue::has_departure_for(const Newcomer& newcomer) const {
  const auto found = lanes_.find(newcomer.lane);
  if (found == lanes_.end()) return false;
  const auto& lane = found->second;
  const bool full = lane.departures.size() == lane.tickets;
  if (full && !gives_way(lane, newcomer)) return false;
  const auto& departure = lane.departures[lane.spare(full ? &lane.last()->tickets.back() : nullptr)];
  if (departure.in_redis || departure.charge.cost < newcomer.cost) return false;
  return waiting(newcomer.lane, newcomer.client) < newcomer.most;
}

Queue::Displacement Queue::displace(const Newcomer& newcomer) noexcept {
  auto& lane = lanes_.find(newcomer.lane)->second;
  const bool displaced = lane.departures.size() == lane.tickets;
  if (displaced) {
    const auto loser = lane.last()->tickets.back().priority();
    (void)evict_last(lane, loser == newcomer.priority ? Eviction::Levelled : Eviction::Displaced);
  }
  const auto spare = lane.departures.begin() + static_cast<std::ptrdiff_t>(lane.spare());
  const auto departure = *spare;
  lane.departures.erase(spare);
  reschedule(lane);
  return {departure, displaced};
}

// Evicts the last ticket in order. Does not reschedule the lane. REQUIRES a waiting ticket.
Queue::Ticket& Queue::evict_last(Lane& lane, Eviction why) noexcept {
  const auto found = std::find_if(lane.classes.rbegin(), lane.classes.rend(),
                                  [](const Lane::Class& waiting) { return waiting.tickets != 0; });
  auto& ticket = found->by_tickets.rbegin()->tickets.back();
  take_out(ticket, false);
  ticket.eviction_ = why;
  evicted_[ticket.worker_].push_back(ticket);
  return ticket;
}

void Queue::evict_overtaken(const limit::Key& key) noexcept {
  auto& lane = lanes_.find(key)->second;
  bool any = false;
  for (const auto* client = lane.last(); client != nullptr; client = lane.last()) {
    const auto at = lane.departures[lane.tickets - 1].at;
    if (at <= client->tickets.back().deadline_) break;
    evict_last(lane, Eviction::Overtaken).too_late_at_ = at;
    any = true;
  }
  if (any) reschedule(lane);
}

Queue::Ticket* Queue::take_evicted(Worker worker) noexcept {
  auto& evicted = evicted_[worker];
  if (evicted.empty()) return nullptr;
  auto& ticket = evicted.front();
  evicted.pop_front();
  return &ticket;
}

void Queue::forget(Ticket& ticket) noexcept {
  auto& evicted = evicted_[ticket.worker_];
  if (ticket.in_lane::Hook::is_linked()) evicted.erase(evicted.iterator_to(ticket));
}

void Queue::offer(const Departure& departure, Worker keeper) {
  auto& lane = lane_of(departure.charge.key, keeper);
  try {
    add(lane, departure);
  } catch (...) {
    remove_unused(lane);
    throw;
  }
  reschedule(lane);
}

const Departure* Queue::surplus(const limit::Key& key) const {
  const auto lane = lanes_.find(key);
  return lane != lanes_.end() ? lane->second.surplus() : nullptr;
}

void Queue::drop_surplus(const limit::Key& key) noexcept {
  auto& lane = lanes_.find(key)->second;
  assert(lane.surplus() != nullptr);
  lane.departures.pop_back();
  reschedule(lane);
}

base::TimePoint Queue::next_due(Worker worker) const noexcept {
  const auto& due = due_[worker];
  return due.empty() ? base::TimePoint::max() : due.begin()->due;
}

Queue::Ticket* Queue::take_due(Worker worker, base::TimePoint now) noexcept {
  auto& due = due_[worker];
  while (!due.empty() && due.begin()->due <= now) {
    auto& lane = *due.begin();
    // Null: no ticket may take the departure, so the departure stays unused.
    auto* const ticket = lane.next().ticket;
    if (ticket != nullptr) {
      take_out(*ticket, true);
      ticket->departure_ = lane.departures.front();
    }
    lane.departures.pop_front();
    reschedule(lane);
    if (ticket != nullptr) return ticket;
  }
  return nullptr;
}

double Queue::fullness() const noexcept {
  double fullest = 0;
  for (const auto& lane : shared_)
    fullest = std::max(fullest, static_cast<double>(lane.cost) / static_cast<double>(lane.max_waiting));
  return std::min(fullest, 1.0);
}

std::size_t Queue::waiting(const limit::Key& key) const {
  const auto lane = lanes_.find(key);
  return lane == lanes_.end() ? 0 : lane->second.tickets;
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

std::optional<base::TimePoint> Queue::crowded_until(const limit::Key& lane, const limit::Key& client,
                                                    std::uint64_t most) const {
  if (waiting(lane, client) < most) return std::nullopt;
  return next_departure(lane, client);
}

// Returns when this client's next ticket departs. Other tickets take departures before it: all tickets of
// better priorities, and one ticket of each client with an earlier turn.
base::TimePoint Queue::next_departure(const limit::Key& key, const limit::Key& client) const {
  const auto& lane = lanes_.at(key);
  std::size_t before = 0;
  for (policy::Priority priority = 0; priority < policy::kPriorities; ++priority) {
    if (const auto own = lane.clients.find({client, priority}); own != lane.clients.end()) {
      const auto& turns = lane.classes[priority].turns;
      before += static_cast<std::size_t>(std::distance(turns.begin(), turns.iterator_to(own->second)));
      break;
    }
    before += lane.classes[priority].tickets;
  }
  assert(before < lane.departures.size());
  return lane.departures[before].at;
}

base::TimePoint Queue::departure_behind(const Ticket& ticket) const noexcept {
  const auto& lane = *ticket.lane_;
  std::size_t before = 0;
  for (policy::Priority priority = 0; priority <= ticket.priority_; ++priority)
    before += lane.classes[priority].tickets;
  return lane.departures[before - 1].at;  // `before` includes the ticket itself
}

}  // namespace weir::proxy
