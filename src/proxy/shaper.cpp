#include "weir/proxy/shaper.hpp"

#include <algorithm>

namespace weir::proxy {

// `before`: the lane's first departure as `next_` knows it; max() when it does not stand there.
void Shaper::schedule(const Lanes::iterator& lane, base::TimePoint before) {
  const bool idle = lane->second.departures.empty();
  const auto first = idle ? base::TimePoint::max() : lane->second.departures.front().at;
  if (before != first) {
    if (before != base::TimePoint::max()) next_.erase({before, lane->first});
    if (!idle) next_.emplace(first, lane->first);
  }
  if (idle) lanes_.erase(lane);
}

void Shaper::rearm() {
  const auto wanted = next_.empty() ? base::TimePoint::max() : next_.begin()->first;
  if (wanted == armed_for_) return;
  armed_for_ = wanted;
  if (next_.empty()) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(clock_.steady(wanted));
  timer_.async_wait([this](const net::ErrorCode& error) {
    if (error) return;
    armed_for_ = base::TimePoint::max();
    depart_due();
    rearm();
  });
}

void Shaper::depart_due() {
  const auto now = clock_.now();
  while (!next_.empty() && next_.begin()->first <= now) {
    const auto lane = lanes_.find(next_.begin()->second);
    const auto before = lane->second.departures.front().at;
    auto& ticket = lane->second.tickets.front();
    lane->second.tickets.pop_front();
    lane->second.departures.pop_front();
    ticket.departed_ = true;
    ticket.wake_.raise();
    --waiting_;
    schedule(lane, before);
  }
}

net::Task<bool> Shaper::wait(Ticket& ticket, const limit::Key& key, Slot& slot) {
  const auto joined = lanes_.try_emplace(key).first;
  auto& departures = joined->second.departures;
  const auto before = departures.empty() ? base::TimePoint::max() : departures.front().at;
  departures.insert(std::upper_bound(departures.begin(), departures.end(), slot), slot);
  joined->second.tickets.push_back(ticket);
  ++waiting_;
  schedule(joined, before);
  rearm();

  co_await ticket.wake_.wait();
  if (ticket.departed_) co_return true;

  const auto lane = lanes_.find(key);
  const auto first = lane->second.departures.front().at;
  lane->second.tickets.erase(lane->second.tickets.iterator_to(ticket));
  slot = lane->second.departures.back();
  lane->second.departures.pop_back();
  --waiting_;
  schedule(lane, first);
  rearm();
  co_return false;
}

}  // namespace weir::proxy
