// Bills (the charges of one request) of a store on a cluster. A script may use only keys of one slot
// (redis.io, "Redis cluster specification"). So a bill is sent in parts, one for each slot, all at the same
// time. If one part is refused, the charges of the other parts are refunded.
#include "redis/cluster/cluster.hpp"
#include "redis/scripts/bill.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <coroutine>
#include <limits>
#include <new>
#include <utility>
#include <variant>

#include <boost/container/static_vector.hpp>

namespace weir::redis {

namespace {

// The most redirections of one call or command. If there are more, the nodes disagree about the slots, and
// the call or command fails.
constexpr unsigned kMostHops = 6;

constexpr limit::ChargeSet bit(std::size_t index) noexcept {
  return limit::ChargeSet{1} << index;
}

}  // namespace

// The calls for the parts of a bill, and the answers to the bill's charges. Lives in the frame of the
// waiting coroutine, because each call points into this object.
class Store::Cluster::Parts {
 public:
  using Calls = boost::container::static_vector<Call, limit::kMaxCharges>;

  Parts(Charges charges, Outcomes outcomes)
      : bill_(charges), bill_outcomes_(outcomes), left_(limit::all_charges(charges.size())) {
    for (std::size_t i = 0; i < charges.size(); ++i) slots_[i] = slot_of(limit::slot_hash_of(charges[i].key));
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // Makes calls for the charges without an answer. The first divide() makes one call for each slot. A second
  // divide(), needed only if a slot is moving, makes one call for each charge.
  void divide() {
    calls_.clear();
    const bool singly = std::exchange(divided_, true);
    std::size_t end = 0;
    for (std::size_t i = 0; i < bill_.size(); ++i) {
      if ((left_ & bit(i)) == 0) continue;
      const std::size_t begin = end;
      for (std::size_t j = i; j < (singly ? i + 1 : bill_.size()); ++j)
        if (slots_[j] == slots_[i]) put(j, end);
      calls_.push_back({.charges = std::span(charges_).subspan(begin, end - begin),
                        .outcomes = std::span(outcomes_).subspan(begin, end - begin),
                        .slot = slots_[i],
                        .alone = singly});
    }
  }
  [[nodiscard]] Calls& calls() noexcept { return calls_; }

  // Stores the answers of the calls. Returns true if some charges have no answer
  // and must be sent again, one by one.
  [[nodiscard]] bool take_answers() noexcept {
    for (const Call& call : calls_)
      for (std::size_t i = 0; i < call.charges.size(); ++i) take_answer(call, i);
    return left_ != 0;
  }

  [[nodiscard]] bool refused() const noexcept { return refused_; }
  [[nodiscard]] limit::ChargeSet failed() const noexcept { return failed_; }
  [[nodiscard]] net::ErrorCode error() const noexcept { return error_; }
  // Returns the time of the Redis node that decided the first charge with an answer. Sets Outcome::ahead of
  // each charge: the time of the node that decided the charge, minus the returned time.
  [[nodiscard]] base::TimePoint align_clocks() noexcept {
    const auto answered = limit::all_charges(bill_.size()) & ~failed_;
    if (answered == 0) return {};
    const auto clock = clocks_[static_cast<std::size_t>(std::countr_zero(answered))];
    for (std::size_t i = 0; i < bill_.size(); ++i)
      if ((answered & bit(i)) != 0) bill_outcomes_[i].ahead = clock_ahead(clocks_[i], clock);
    return clock;
  }
  // Calls `visit` with the refund of each charge that was made.
  void each_charged(auto visit) const {
    for (auto rest = charged_; rest != 0; rest &= rest - 1) {
      const auto index = static_cast<std::size_t>(std::countr_zero(rest));
      visit(refund_of(bill_[index], clocks_[index], bill_outcomes_[index]));
    }
  }

 private:
  void put(std::size_t index, std::size_t& end) noexcept {
    if ((left_ & bit(index)) == 0) return;
    left_ &= ~bit(index);
    indexes_[end] = static_cast<std::uint8_t>(index);
    charges_[end++] = bill_[index];
  }
  void take_answer(const Call& call, std::size_t i) noexcept {
    const auto at = static_cast<std::size_t>(call.charges.data() - charges_.data()) + i;
    const std::size_t index = indexes_[at];
    if (call.is_split) {
      left_ |= bit(index);
    } else if (call.error) {
      failed_ |= bit(index);
      error_ = call.error;
    } else {
      bill_outcomes_[index] = call.outcomes[i];
      clocks_[index] = call.server_now;
      refused_ = refused_ || (call.charges[i].enforced && !call.outcomes[i].allowed);
      if (call.charged() && call.outcomes[i].allowed && call.charges[i].cost != 0) charged_ |= bit(index);
    }
  }

  Charges bill_;
  Outcomes bill_outcomes_;
  limit::ChargeSet left_;  // charges of the bill that have no answer and are in no call
  limit::ChargeSet failed_ = 0, charged_ = 0;
  bool divided_ = false, refused_ = false;
  net::ErrorCode error_;
  std::array<Slot, limit::kMaxCharges> slots_{};
  std::array<base::TimePoint, limit::kMaxCharges> clocks_{};
  // The charges of all calls, one call after another, and their outcomes.
  // indexes_ has the index of each of these charges in the bill.
  std::array<limit::Charge, limit::kMaxCharges> charges_{};
  std::array<limit::Outcome, limit::kMaxCharges> outcomes_{};
  std::array<std::uint8_t, limit::kMaxCharges> indexes_{};
  Calls calls_;
};

// An awaitable that suspends the coroutine until all calls of the bill have their answers.
struct Store::Cluster::Round {
  Parts& parts;
  unsigned waiting;
  bool await_ready() const noexcept { return waiting == 0; }
  void await_suspend(std::coroutine_handle<> caller) noexcept {
    for (Call& call : parts.calls()) {
      call.caller = caller;
      call.waiting = &waiting;
    }
  }
  void await_resume() const noexcept {}
};

net::Task<net::ErrorCode> Store::Cluster::charge(Charges charges, Outcomes outcomes,
                                                 base::TimePoint& server_now, limit::ChargeSet& unanswered) {
  const auto self = shared_from_this();  // the store may be destroyed during co_await
  count(stats_.calls);
  const auto deadline = std::chrono::steady_clock::now() + settings_.timeout;
  Parts parts(charges, outcomes);
  do {
    parts.divide();
    Round round{parts, send(parts, deadline)};
    co_await round;
  } while (parts.take_answers());
  if (parts.refused()) refund_parts(parts);
  server_now = parts.align_clocks();
  unanswered = parts.failed();
  if (unanswered != 0) count(stats_.failures);
  co_return parts.error();
}

// Sends all calls. Returns how many calls were sent and will therefore be answered.
unsigned Store::Cluster::send(Parts& parts, Pipeline::Time deadline) {
  unsigned sent = 0;
  for (Call& call : parts.calls()) {
    call.deadline = deadline;
    call.permit = permit_renewer_->next_permit();
    Session* session = owner(call.slot);
    call.error = StoreError::Overloaded;
    try {
      call.error = stopped_             ? net::ErrorCode(StoreError::Stopped)
                   : session == nullptr ? net::ErrorCode(StoreError::Away)
                                        : session->enqueue(call);
    } catch (const std::bad_alloc&) {  // this call was not sent; earlier calls may have been
    }
    if (!call.error) ++sent;
  }
  return sent;
}

// Called if a node has refused a part of the bill. Refunds the charges of the other parts. If memory runs
// out, some of these charges remain.
void Store::Cluster::refund_parts(const Parts& parts) {
  std::array<Refund, limit::kMaxCharges> refunds;
  std::size_t n = 0;
  parts.each_charged([&](const Refund& one) {
    if (limit::holds(*one.charge.limiter))
      permit_renewer_->release(one.charge);
    else
      refunds[n++] = one;
  });
  try {
    refund(std::span(refunds).first(n));
  } catch (const std::bad_alloc&) {
    count(stats_.refunds_lost);
  }
}

// If all charges are in one slot, the deny cache decides the bill as a whole. Otherwise returns nullopt if
// the bill has a leaky bucket or a concurrency limit. For other bills, asks the deny cache about each charge
// alone, and refuses the bill if the cache refuses one of them. Retry-After is then the longest wait of the
// refused charges.
std::optional<base::TimePoint> Store::Cluster::refuses(Charges charges, Outcomes outcomes) noexcept {
  const auto now = std::chrono::steady_clock::now();
  const auto slot = slot_of(limit::slot_hash_of(charges.front().key));
  const bool one_slot = std::all_of(charges.begin(), charges.end(), [&](const limit::Charge& charge) {
    return slot_of(limit::slot_hash_of(charge.key)) == slot;
  });
  if (one_slot) return denied_.refuses(charges, outcomes, now);
  const bool waits_or_holds = std::any_of(charges.begin(), charges.end(), [](const limit::Charge& charge) {
    return std::holds_alternative<limit::LeakyBucket>(*charge.limiter) || limit::holds(*charge.limiter);
  });
  if (waits_or_holds) return std::nullopt;
  std::optional<base::TimePoint> clock;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const auto known = denied_.refuses(charges.subspan(i, 1), outcomes.subspan(i, 1), now);
    // Redis must check this charge. If Redis refuses it, Redis must count a violation for the penalty.
    if (!known && charges[i].penalty != nullptr) return std::nullopt;
    if (!known) outcomes[i] = {.allowed = true};
    if (!clock) clock = known;
    if (known) outcomes[i].ahead = clock_ahead(*known, *clock);
  }
  return clock;
}

// Passes each refund to the session of the node that has the refund's key. The refunds of each key keep their
// order.
void Store::Cluster::refund(std::span<const Refund> refunds) {
  for (; !refunds.empty(); refunds = refunds.subspan(1)) {
    const auto one = refunds.first(1);
    if (Session* session = owner(slot_of(limit::slot_hash_of(one.front().charge.key)))) {
      session->refund(one);
    } else {
      count(stats_.refunds);
      count(stats_.refunds_lost);
    }
  }
}

bool Store::Cluster::is_quiet() const noexcept {
  return std::all_of(sessions_.begin(), sessions_.end(),
                     [](const auto& session) { return session->is_quiet(); });
}

net::ErrorCode Store::Cluster::begin(Call& call) {
  count(stats_.calls);
  call.slot = slot_of(limit::slot_hash_of(call.charges.front().key));
  call.deadline = std::chrono::steady_clock::now() + settings_.timeout;
  Session* session = owner(call.slot);
  const auto refused = stopped_             ? net::ErrorCode(StoreError::Stopped)
                       : session == nullptr ? net::ErrorCode(StoreError::Away)
                                            : session->enqueue(call);
  if (refused) count(stats_.failures);
  return refused;
}

bool Store::Cluster::forget(const limit::Charge& charge) {
  Session* session = owner(slot_of(limit::slot_hash_of(charge.key)));
  return session != nullptr && session->forget(charge);
}

base::TimePoint Store::Cluster::server_time(const limit::Key& key, Pipeline::Time now) const noexcept {
  if (const Session* session = owner(slot_of(limit::slot_hash_of(key))))
    return session->server_time(key, now);
  return std::chrono::time_point_cast<base::Duration>(std::chrono::system_clock::now());
}

// Handles these errors of a node:
// * CLUSTERDOWN: the map of slots is read again, and the call fails.
// * MOVED: the slot has moved. Sends the bill to the new node.
// * ASK and TRYAGAIN: the slot is moving. Some of its keys are already on the new node, the others still on
//   the old node. A bill with several keys is then sent again in parts, because only the answer about a
//   single key shows which node has that key.
bool Store::Cluster::resend(Call& call, const Pipeline::Entry& entry, std::string_view error, Session& from) {
  const auto to = redirection_in(error, from.address());
  if (error.starts_with("CLUSTERDOWN")) read_slots();
  if (stopped_ || (!to && !error.starts_with("TRYAGAIN")) || ++call.hops > kMostHops) return false;
  call.asking = false;
  Session* next = &from;
  if (to && to->kind == Redirection::Kind::Moved) {
    next = follow(*to);
  } else if (entry.bills.size() > 1) {
    call.alone = true;
  } else if (call.charges.size() > 1) {
    call.is_split = true;
    from.answer(call, StoreError::Loading);
    return true;
  } else if (to) {
    next = follow(*to);
    call.asking = call.alone = true;
  }
  return next != nullptr && !next->enqueue(call);
}

bool Store::Cluster::resend(Pipeline::Entry& entry, std::string_view error, Session& from) {
  const auto to = redirection_in(error, from.address());
  if (stopped_) return false;
  const bool moves = to ? to->kind == Redirection::Kind::Ask : error.starts_with("TRYAGAIN");
  if (moves && entry.lines.size() > 1) {
    for (const Refund& one : entry.lines) from.refund_alone(one);
    return true;
  }
  if (!to || ++entry.hops > kMostHops) return false;
  Session* next = follow(*to);
  return next != nullptr && next->send(entry, to->kind == Redirection::Kind::Ask);
}

}  // namespace weir::redis
