// The commands without a reply, in order, and the bytes that have yet to be sent. Pure: no socket, no clock.
// The session moves the bytes and passes the time.
//
// Invariants
//  1. Redis answers in order, so the next reply belongs to the front of the queue, abandoned or not. An
//     abandoned command keeps its place. Its late reply meets its own entry, and what it charged is refunded.
//     Each script returns the number of its call, which proves that the reply belongs to the entry.
//  2. A call is gathered or queued, at most once. It is in neither once it has its answer.
#pragma once

#include "redis/cluster/cluster_slots.hpp"
#include "redis/scripts/bill.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/net/asio.hpp"
#include "weir/redis/last_refunds.hpp"

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/circular_buffer.hpp>

namespace weir::redis {

// A bill whose coroutine waits. It lives in the frame of that coroutine, from before it is pushed until the
// coroutine is resumed.
struct Call {
  std::span<const limit::Charge> charges;
  std::span<limit::Outcome> outcomes;
  base::TimePoint server_now{};
  net::ErrorCode error{};
  std::coroutine_handle<> caller{};  // resumed on this thread
  std::chrono::steady_clock::time_point deadline{};
  bool looks = false;        // returns outcomes without charging
  bool in_advance = false;   // no request waits for it; it is sent behind those that requests wait for
  bool resent = false;       // sent again because the first attempt had no effect; at most once
  std::uint64_t permit = 0;  // serial number of its permits; set when it is gathered
  // In a cluster:
  Slot slot = 0;          // slot of all its keys
  bool alone = false;     // shares a script call with no other bill
  bool asking = false;    // ASKING precedes it: the node answers although the slot is still moving there
  bool apart = false;     // set instead of an answer: the keys must be asked one by one
  std::uint8_t hops = 0;  // number of nodes that passed it on
  unsigned* waiting = nullptr;  // number of calls that its coroutine waits for; null if this is the only one

  // Must be called when the answer is here. Returns true if the coroutine should be resumed.
  [[nodiscard]] bool ends_wait() const noexcept { return waiting == nullptr || --*waiting == 0; }
  // Returns true if no enforced line of an answered bill was refused.
  [[nodiscard]] bool charged() const noexcept;
};

// Suspends the coroutine that awaits it until the call has its answer.
struct Park {
  Call& call;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) const noexcept { call.caller = caller; }
  void await_resume() const noexcept {}
};

class Pipeline {
 public:
  using Time = std::chrono::steady_clock::time_point;

  enum class Purpose : std::uint8_t {
    Charge,
    Refund,
    LoadCharge,  // SCRIPT LOAD after NOSCRIPT
    LoadRefund,
    Asking,  // ASKING, before a command about a slot that is moving to the node
  };

  struct Bill {
    Call* call = nullptr;                    // null once abandoned
    std::vector<limit::Charge> abandoned{};  // the lines that a late reply may have charged
    std::uint64_t permit = 0;                // as in its call

    [[nodiscard]] Lines lines() const noexcept { return call != nullptr ? Lines(call->charges) : abandoned; }
  };

  struct Entry {
    Purpose purpose;
    CallNumber number = 0;                   // of a Charge or Refund
    std::vector<Bill> bills{};               // of a Charge: the bills that share the call, in order
    Time sent{};                             // when its bytes were appended
    LastRefunds::Groups refunded{};          // of a Refund: the groups of its keys
    std::unique_ptr<std::string> command{};  // of a Refund: its bytes, in case they must be sent again
    std::vector<Refund> lines{};             // of a Refund in a cluster with several lines, or with renewals
    std::size_t amended = 0;                 // of a Refund: its number of lines
    bool resent = false;                     // of a Refund: sent again after NOSCRIPT; at most once
    std::uint8_t hops = 0;                   // of a Refund: number of nodes that passed it on
  };

  // `patience`: how long any command may go without an answer. `timeout`: how long a bill may.
  Pipeline(std::size_t max_pending, base::Duration patience, base::Duration timeout)
      : pending_(max_pending), patience_(patience), short_trip_(timeout / 4) {}

  // Returns true if gathered bills should wait for others to share a call with. So many calls wait for a
  // reply that the next one comes soon, and the gathered bills do not yet fill a call. This is so only while
  // a round trip takes less than a quarter of `timeout`; waiting and asking then take less than half of it. A
  // Redis that is merely far away has nothing to do meanwhile, and waiting would only delay the bills.
  static constexpr std::size_t kMostUnanswered = 8;
  [[nodiscard]] bool awaits_company(Time now) const noexcept;
  // Notes how long the last answer took, if it answered a command that was not pushed.
  void note_trip(Time::duration took) noexcept { last_trip_ = took; }
  // Returns true if there is no room for another bill or another command.
  [[nodiscard]] bool full() const noexcept { return !has_room() || bills_ >= pending_.capacity(); }
  [[nodiscard]] bool has_room(std::size_t entries = 1) const noexcept {
    return pending_.reserve() >= entries;
  }
  [[nodiscard]] bool empty() const noexcept { return pending_.empty() && !gathers(); }
  // Returns true if anything gathered waits to be sent.
  [[nodiscard]] bool gathers() const noexcept { return !gathered_.empty() || !refunds_.empty(); }

  // Sorts gathered bills and refunds by slot, so that those that may share a call are adjacent.
  void order_by_slot();
  // Keeps a bill until take_group() sends it together with others. Bills that requests wait for precede bills
  // in advance.
  void gather(Call& call);
  // Returns the next gathered bills that may share a call, in order; empty if there are none. This function
  // alone decides which bills may share a call.
  [[nodiscard]] std::vector<Bill> take_group();
  // Gathers refunds, settlements and renewals. Returns false, and keeps none, if too many wait already.
  [[nodiscard]] bool gather(std::span<const Refund> refunds);
  // Calls `send` with groups of the gathered refunds while there is room. Leaves half of the room to bills,
  // unless `all`. If `by_slot`, each group has one slot.
  void send_refunds(const std::function<void(std::span<const Refund>)>& send, bool by_slot, bool all);
  // Keeps the memory of an entry's bills for reuse.
  void recycle(std::vector<Bill> bills);

  // Appends an entry for a command whose bytes the caller has appended to `output()`. REQUIRES has_room().
  void push(Entry entry, Time now) {
    entry.sent = now;
    if (entry.purpose == Purpose::Charge) ++charges_;
    pending_.push_back(std::move(entry));
  }

  // Returns the entry that the next reply belongs to; null if there is none.
  [[nodiscard]] const Entry* first() const noexcept { return pending_.empty() ? nullptr : &pending_.front(); }
  // Removes and returns the entry whose reply came at `now`; nullopt if there is none.
  [[nodiscard]] std::optional<Entry> pop(Time now);

  // Abandons the calls whose deadline is `now` or earlier, and returns them. Their entries keep their lines.
  [[nodiscard]] std::vector<Call*> take_expired(Time now);
  // Returns true if the oldest command has waited longer than `patience`.
  [[nodiscard]] bool is_overdue(Time now) const noexcept {
    return !pending_.empty() && pending_.front().sent + patience_ <= now;
  }
  // Returns the earliest deadline among the waiting calls and the oldest command.
  [[nodiscard]] std::optional<Time> next_deadline() const noexcept;

  // Removes and returns all entries of a connection that has ended, and drops its bytes. Gathered bills and
  // refunds are returned as if they had been sent.
  [[nodiscard]] std::vector<Entry> take_all();

  // Returns the bytes that have yet to be sent.
  [[nodiscard]] std::string& output() noexcept { return output_; }

 private:
  static constexpr std::size_t kKeptVectors = 64;
  static constexpr std::size_t kMostGathered = 65'536;

  // Returns true if the gathered bills fill a script call, or if one of them may share it with no other.
  [[nodiscard]] bool fills_a_call() const noexcept;

  boost::circular_buffer<Entry> pending_;
  base::Duration patience_, short_trip_;
  Time::duration last_trip_{};  // from a command's bytes to its answer
  std::vector<Call*> gathered_;
  std::vector<Refund> refunds_;  // gathered too
  std::size_t bills_ = 0;        // gathered and pending
  std::size_t charges_ = 0;      // pending entries of Purpose::Charge
  std::vector<std::vector<Bill>> spare_;
  std::string output_;
};

}  // namespace weir::redis
