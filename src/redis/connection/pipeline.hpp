// The commands that wait for a reply, in order, and the bytes that were not sent yet. Pure: no socket, no
// clock. The session sends the bytes, and passes the current time.
//
// Invariants
//  1. Redis answers in order, so the next reply belongs to the entry at the front of the queue. A command
//     whose deadline has passed is abandoned but keeps its entry, which receives the late reply. If the
//     late reply reports a charge, the charge is refunded. Each script returns the number of its call, which
//     proves that the reply belongs to the entry.
//  2. An unanswered call is in the list of gathered bills or in the queue of sent commands, but never in
//     both. An answered call is in neither.
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

// A bill (the charges of one request) whose coroutine waits for the outcome. The Call object is in the
// coroutine's frame until the coroutine is resumed.
struct Call {
  std::span<const limit::Charge> charges;
  std::span<limit::Outcome> outcomes;
  base::TimePoint server_now{};
  net::ErrorCode error{};
  std::coroutine_handle<> caller{};  // the coroutine of the bill; it is resumed on this thread
  std::chrono::steady_clock::time_point deadline{};
  bool peeks = false;        // true: only checks and returns outcomes; charges nothing
  bool prefetched = false;   // true: prefetches units; sent after the calls for which requests wait
  bool resent = false;       // true: sent twice, because the first command had no effect; never three times
  std::uint64_t permit = 0;  // serial number of the bill's permits; set when the bill is gathered
  // The members below are used only in a cluster.
  Slot slot = 0;       // the slot of all keys of the bill
  bool alone = false;  // true: the bill must have a script call of its own
  // True: the call needs the command ASKING before it, because the slot is moving to the node that gets the
  // call.
  bool asking = false;
  bool is_split = false;  // true: ended without an answer, because its keys must be charged one by one
  std::uint8_t hops = 0;  // number of nodes that redirected the call to another node
  // Points to the number of unanswered calls for which the coroutine waits; null if it waits for this call
  // only.
  unsigned* waiting = nullptr;

  // Must be called when this call has received its answer. Returns true if it was the last one for which the
  // coroutine waits. The caller should then resume the coroutine.
  [[nodiscard]] bool ends_wait() const noexcept { return waiting == nullptr || --*waiting == 0; }
  // Returns true if Redis charged the bill: it refused no enforced charge. Must be called after the call was
  // answered.
  [[nodiscard]] bool charged() const noexcept;
};

// An awaitable that suspends the coroutine until its call has the answer.
struct AwaitReply {
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
    LoadCharge,  // SCRIPT LOAD of charge.lua after NOSCRIPT
    LoadRefund,
    Asking,  // ASKING, which precedes a command about a slot that is moving to this node
  };

  struct Bill {
    Call* call = nullptr;  // null after the call was abandoned
    // The charges of an abandoned call. If a late reply shows that Redis has made them, they are refunded.
    std::vector<limit::Charge> abandoned{};
    std::uint64_t permit = 0;  // copy of Call::permit

    [[nodiscard]] Lines lines() const noexcept { return call != nullptr ? Lines(call->charges) : abandoned; }
  };

  struct Entry {
    Purpose purpose;
    CallNumber number = 0;                   // for Charge and Refund: number of the script call
    std::vector<Bill> bills{};               // for Charge: the bills that share the script call, in order
    Time sent{};                             // when the command was appended to output()
    LastRefunds::Groups refunded{};          // for Refund: LastRefunds::group_of() of the refunded keys
    std::unique_ptr<std::string> command{};  // for Refund: the command's bytes, to send them again
    // for Refund: the refunds in the command, for a later attempt that cannot send the same command. Empty
    // unless one of them is a renewal, or several of them go to a cluster.
    std::vector<Refund> lines{};
    std::size_t refund_count = 0;  // for Refund: number of refunds in the command
    // for Refund: true if the command was sent twice because of NOSCRIPT; never three times
    bool resent = false;
    std::uint8_t hops = 0;  // for Refund: number of nodes that redirected the command to another node
  };

  // `patience`: the longest wait for the reply to any command. `timeout`: the longest wait for the outcome of
  // a bill.
  Pipeline(std::size_t max_pending, base::Duration patience, base::Duration timeout)
      : pending_(max_pending), patience_(patience), short_trip_(timeout / 4) {}

  // If at least this many script calls are unanswered, Redis is busy. Then a reply comes soon and triggers
  // the next send, so waits_for_more_bills() may return true. This is no upper bound: more calls may be
  // unanswered.
  static constexpr std::size_t kBusyCalls = 8;
  // Returns true if the gathered bills should wait for more bills that can share their script call. All of
  // these conditions must hold:
  // * At least kBusyCalls calls are unanswered. With fewer calls Redis is not busy, and waiting would
  //   only delay the bills.
  // * The gathered bills do not fill a call.
  // * A round trip takes less than a quarter of `timeout`. So the wait for a reply and the bill's own round
  //   trip together take less than half of `timeout`.
  [[nodiscard]] bool waits_for_more_bills(Time now) const noexcept;
  // Records the duration of a round trip. Must be called for a command that was sent without push(), such as
  // the test charge of a new connection.
  void note_trip(Time::duration took) noexcept { last_trip_ = took; }
  // Returns true if the pipeline cannot take another bill.
  [[nodiscard]] bool full() const noexcept { return !has_room() || bills_ >= pending_.capacity(); }
  [[nodiscard]] bool has_room(std::size_t entries = 1) const noexcept {
    return pending_.reserve() >= entries;
  }
  [[nodiscard]] bool empty() const noexcept { return pending_.empty() && !gathers(); }
  // Returns true if a bill (the charges of one request) or a refund is gathered, that is, not yet sent.
  [[nodiscard]] bool gathers() const noexcept { return !gathered_.empty() || !refunds_.empty(); }

  // Sorts the gathered bills and refunds by slot. Bills that may share a call are adjacent then.
  void order_by_slot();
  // Adds a bill (the charges of one request) to the gathered bills, from which take_group() removes it. Bills
  // for which requests wait come before bills that prefetch units.
  void gather(Call& call);
  // Removes and returns the next gathered bills that may share a script call, in order. Returns none if no
  // bills are gathered. This function alone decides which bills may share a call.
  [[nodiscard]] std::vector<Bill> take_group();
  // Adds refunds, settlements and renewals to the gathered refunds. Returns false and adds nothing if too
  // many of them are gathered already.
  [[nodiscard]] bool gather(std::span<const Refund> refunds);
  // Calls `send` with groups of the gathered refunds while the pipeline can take more commands. If `all` is
  // false, leaves half of the pipeline's capacity free for bills. If `by_slot` is true, all refunds of a
  // group are in one slot.
  void send_refunds(const std::function<void(std::span<const Refund>)>& send, bool by_slot, bool all);
  // Keeps a vector of bills that the caller no longer needs, so that its memory is used again.
  void recycle(std::vector<Bill> bills);

  // Appends an entry for a command. The caller must have appended the command's bytes to output(). REQUIRES:
  // has_room().
  void push(Entry entry, Time now) {
    entry.sent = now;
    if (entry.purpose == Purpose::Charge) ++charges_;
    pending_.push_back(std::move(entry));
  }

  // Returns the entry to which the next reply belongs; null if no command waits for a reply.
  [[nodiscard]] const Entry* first() const noexcept { return pending_.empty() ? nullptr : &pending_.front(); }
  // Removes and returns the entry to which the next reply belongs; nullopt if no command waits for a reply.
  // `now`: when the reply came.
  [[nodiscard]] std::optional<Entry> pop(Time now);

  // Abandons the calls whose deadline is `now` or earlier, and returns them. The entries keep the charges of
  // these calls.
  [[nodiscard]] std::vector<Call*> take_expired(Time now);
  // Returns true if the oldest command has waited longer than `patience`.
  [[nodiscard]] bool is_overdue(Time now) const noexcept {
    return !pending_.empty() && pending_.front().sent + patience_ <= now;
  }
  // Returns the earliest deadline of all waiting calls and of the oldest command; nullopt if nothing waits.
  [[nodiscard]] std::optional<Time> next_deadline() const noexcept;

  // Removes and returns all entries, and drops all unsent bytes. Must be called when the connection has
  // ended. Also returns the gathered bills and refunds, as entries.
  [[nodiscard]] std::vector<Entry> take_all();

  // Returns the bytes to send. The caller must remove the bytes that it has sent.
  [[nodiscard]] std::string& output() noexcept { return output_; }

 private:
  static constexpr std::size_t kKeptVectors = 64;
  static constexpr std::size_t kMostGathered = 65'536;

  // Returns true if the gathered bills (the charges of one request each) fill a script call, or if one of
  // them must have a call of its own.
  [[nodiscard]] bool fills_a_call() const noexcept;

  boost::circular_buffer<Entry> pending_;
  base::Duration patience_, short_trip_;
  Time::duration last_trip_{};  // duration of the last round trip
  std::vector<Call*> gathered_;
  std::vector<Refund> refunds_;  // gathered refunds
  std::size_t bills_ = 0;        // number of bills, gathered and sent
  std::size_t charges_ = 0;      // number of script calls in the queue that charge bills (Purpose::Charge)
  std::vector<std::vector<Bill>> spare_;
  std::string output_;
};

}  // namespace weir::redis
