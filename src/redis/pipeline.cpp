#include "redis/pipeline.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::redis {

std::optional<Pipeline::Entry> Pipeline::pop() {
  if (pending_.empty()) return std::nullopt;
  std::optional<Entry> front(std::move(pending_.front()));
  pending_.pop_front();
  return front;
}

std::vector<Call*> Pipeline::take_expired(Time now) {
  std::vector<Call*> expired;
  for (Entry& entry : pending_) {
    if (entry.call == nullptr || entry.deadline > now) continue;
    const auto charges = entry.call->charges;
    entry.abandoned.assign(charges.begin(), charges.end());
    expired.push_back(std::exchange(entry.call, nullptr));
  }
  return expired;
}

std::optional<Pipeline::Time> Pipeline::next_deadline() const noexcept {
  std::optional<Time> next;
  for (const Entry& entry : pending_)
    if (entry.call != nullptr && (!next || entry.deadline < *next)) next = entry.deadline;
  return next;
}

std::vector<Pipeline::Entry> Pipeline::take_all() {
  std::vector<Entry> all(std::make_move_iterator(pending_.begin()), std::make_move_iterator(pending_.end()));
  pending_.clear();
  output_.clear();
  return all;
}

}  // namespace weir::redis
