#include "redis/connection/pipeline.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::redis {

namespace {

Slot slot_of_line(const Refund& line) noexcept {
  return slot_of(limit::slot_hash_of(line.charge.key));
}

}  // namespace

bool Call::charged() const noexcept {
  bool fits = true;
  for (std::size_t i = 0; i < charges.size(); ++i)
    fits = fits && (outcomes[i].allowed || !charges[i].enforced);
  return fits;
}

bool Pipeline::fills_a_call() const noexcept {
  if (gathered_.size() >= kMostBills) return true;
  std::size_t lines = 0;
  for (const Call* call : gathered_) {
    if (call->alone) return true;
    lines += script_lines(call->charges);
  }
  return lines >= kMostLines;
}

// Estimates the duration of a round trip: the duration of the last one, or the age of the oldest unanswered
// command if that is greater. The age shows that Redis has become slow even while no reply arrives.
bool Pipeline::waits_for_more_bills(Time now) const noexcept {
  if (charges_ < kBusyCalls || fills_a_call()) return false;
  return std::max(last_trip_, now - pending_.front().sent) < short_trip_;
}

void Pipeline::order_by_slot() {
  std::stable_sort(gathered_.begin(), gathered_.end(),
                   [](const Call* a, const Call* b) { return a->slot < b->slot; });
  std::stable_sort(refunds_.begin(), refunds_.end(),
                   [](const Refund& a, const Refund& b) { return slot_of_line(a) < slot_of_line(b); });
}

void Pipeline::gather(Call& call) {
  auto at = gathered_.end();
  while (!call.prefetched && at != gathered_.begin() && (*std::prev(at))->prefetched) --at;
  gathered_.insert(at, &call);
  ++bills_;
}

std::vector<Pipeline::Bill> Pipeline::take_group() {
  std::vector<Bill> group;
  if (gathered_.empty()) return group;
  if (!spare_.empty()) {
    group = std::move(spare_.back());
    spare_.pop_back();
  }
  std::size_t lines = 0;
  for (Call* call : gathered_) {
    lines += script_lines(call->charges);
    if (!group.empty() && (group.size() == kMostBills || lines > kMostLines)) break;
    if (!group.empty() &&
        (group.front().call->alone || call->alone || group.front().call->slot != call->slot))
      break;
    group.push_back({.call = call, .permit = call->permit});
  }
  gathered_.erase(gathered_.begin(), gathered_.begin() + static_cast<std::ptrdiff_t>(group.size()));
  return group;
}

bool Pipeline::gather(std::span<const Refund> refunds) {
  if (refunds_.size() + refunds.size() > kMostGathered) return false;
  refunds_.insert(refunds_.end(), refunds.begin(), refunds.end());
  return true;
}

void Pipeline::send_refunds(const std::function<void(std::span<const Refund>)>& send, bool by_slot,
                            bool all) {
  std::span<const Refund> rest(refunds_);
  while (!rest.empty() && has_room(all ? 1 : pending_.capacity() / 2)) {
    auto group = rest.first(std::min(rest.size(), kMostRefunds));
    if (by_slot) {
      const auto slot = slot_of_line(group.front());
      const auto end = std::find_if(group.begin(), group.end(),
                                    [&](const Refund& line) { return slot_of_line(line) != slot; });
      group = group.first(static_cast<std::size_t>(end - group.begin()));
    }
    send(group);
    rest = rest.subspan(group.size());
  }
  refunds_.erase(refunds_.begin(), refunds_.end() - static_cast<std::ptrdiff_t>(rest.size()));
}

void Pipeline::recycle(std::vector<Bill> bills) {
  if (spare_.size() == kKeptVectors) return;
  bills.clear();
  spare_.push_back(std::move(bills));
}

std::optional<Pipeline::Entry> Pipeline::pop(Time now) {
  if (pending_.empty()) return std::nullopt;
  last_trip_ = now - pending_.front().sent;
  std::optional<Entry> front(std::move(pending_.front()));
  pending_.pop_front();
  bills_ -= front->bills.size();
  if (front->purpose == Purpose::Charge) --charges_;
  return front;
}

std::vector<Call*> Pipeline::take_expired(Time now) {
  std::vector<Call*> expired;
  const auto each = [&](auto visit) {
    for (Entry& entry : pending_)
      for (Bill& bill : entry.bills)
        if (bill.call != nullptr && bill.call->deadline <= now) visit(bill);
  };
  // Allocates all memory before it removes the first call. If an allocation failed later, the removed calls
  // would never get an answer.
  expired.reserve(bills_);
  each([](Bill& bill) { bill.abandoned.assign(bill.call->charges.begin(), bill.call->charges.end()); });
  each([&](Bill& bill) { expired.push_back(std::exchange(bill.call, nullptr)); });
  const auto unsent = std::stable_partition(gathered_.begin(), gathered_.end(),
                                            [&](const Call* call) { return call->deadline > now; });
  bills_ -= static_cast<std::size_t>(gathered_.end() - unsent);
  expired.insert(expired.end(), unsent, gathered_.end());
  gathered_.erase(unsent, gathered_.end());
  return expired;
}

std::optional<Pipeline::Time> Pipeline::next_deadline() const noexcept {
  std::optional<Time> next;
  if (!pending_.empty()) next = pending_.front().sent + patience_;
  const auto see = [&](const Call* call) {
    if (call != nullptr && (!next || call->deadline < *next)) next = call->deadline;
  };
  for (const Entry& entry : pending_)
    for (const Bill& bill : entry.bills) see(bill.call);
  for (const Call* call : gathered_) see(call);
  return next;
}

std::vector<Pipeline::Entry> Pipeline::take_all() {
  std::vector<Entry> all(std::make_move_iterator(pending_.begin()), std::make_move_iterator(pending_.end()));
  if (!gathered_.empty()) {
    all.push_back({.purpose = Purpose::Charge});
    for (Call* call : gathered_) all.back().bills.push_back({.call = call});
  }
  if (!refunds_.empty()) all.push_back({.purpose = Purpose::Refund, .refund_count = refunds_.size()});
  pending_.clear();
  gathered_.clear();
  refunds_.clear();
  bills_ = charges_ = 0;
  output_.clear();
  return all;
}

}  // namespace weir::redis
