// What has been asked and not yet answered, in order, and the bytes that still have to leave. Pure: no
// socket, no clock; the session moves the bytes and says what time it is.
//
// Invariants
//  1. Redis answers in order: the front of the queue is what the next reply is for, abandoned or not. An
//  abandoned
//     command keeps its place, so a late reply meets its own entry, and what it charged is given back. That
//     it is its own, the number says which either script sends back.
//  2. A call is gathered or in the queue, at most once, and in neither any longer once it has its answer.
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

// A bill whose coroutine waits. Lives in the frame of the coroutine that waits, from before it is pushed
// until it is resumed.
struct Call {
  std::span<const limit::Charge> charges;
  std::span<limit::Outcome> outcomes;
  base::TimePoint server_now{};
  net::ErrorCode error{};
  std::coroutine_handle<> caller{};  // resumed on this thread
  std::chrono::steady_clock::time_point deadline{};
  bool looks = false;        // nothing is to be charged
  bool in_advance = false;   // nobody waits for it: it goes behind those that somebody waits for
  bool resent = false;       // asked again, because nothing came of the first time; not twice
  std::uint64_t permit = 0;  // of what it holds; set when it is gathered
  // In a cluster:
  Slot slot = 0;                // of all its keys
  bool alone = false;           // shares a call with no other
  bool asking = false;          // the node is to answer though the slot is only on its way there
  bool apart = false;           // instead of an answer: it has to be asked key by key
  std::uint8_t hops = 0;        // to other nodes, so far
  unsigned* waiting = nullptr;  // how many calls its coroutine still waits for, where that is several

  // Its answer is here. True: the coroutine goes on.
  [[nodiscard]] bool ends_wait() const noexcept { return waiting == nullptr || --*waiting == 0; }
  // Of one that was answered: no enforced line was refused.
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
    Asking,  // before a command that asks a node for what is on its way there
  };

  struct Bill {
    Call* call = nullptr;                    // null once abandoned
    std::vector<limit::Charge> abandoned{};  // then: what a late reply may have charged
    std::uint64_t permit = 0;                // as its call's

    [[nodiscard]] Lines lines() const noexcept { return call != nullptr ? Lines(call->charges) : abandoned; }
  };

  struct Entry {
    Purpose purpose;
    CallNumber number = 0;                   // of Charge and Refund
    std::vector<Bill> bills{};               // of Charge: those that share the call, in order
    Time sent{};                             // when its bytes were appended
    LastRefunds::Groups refunded{};          // of Refund: whose
    std::unique_ptr<std::string> command{};  // of Refund: its bytes, in case they have to leave again
    std::vector<Refund> lines{};             // of Refund, where several are for a cluster or some renew
    std::size_t amended = 0;                 // of Refund: how many lines
    bool resent = false;                     // of Refund, after NOSCRIPT; not twice
    std::uint8_t hops = 0;                   // of Refund, to other nodes, so far
  };

  // `patience`: how long a command may go without an answer, whoever waits for it or nobody; `timeout`: how
  // long a bill may.
  Pipeline(std::size_t max_pending, base::Duration patience, base::Duration timeout)
      : pending_(max_pending), patience_(patience), short_trip_(timeout / 4) {}

  // Whether bills that are gathered had better wait for others to share a call with: so many calls are
  // without an answer that the first of them comes back soon, and they would not fill one yet. Only while a
  // trip takes less than a quarter of `timeout`, so that waiting and asking come to less than half of it: a
  // Redis that is far has nothing to do meanwhile, and what waits for it is late.
  static constexpr std::size_t kMostUnanswered = 8;
  [[nodiscard]] bool awaits_company(Time now) const noexcept;
  // How long the last answer took, where it was to nothing that was pushed.
  void note_trip(Time::duration took) noexcept { last_trip_ = took; }
  // No room for another bill, or another command.
  [[nodiscard]] bool full() const noexcept { return !has_room() || bills_ >= pending_.capacity(); }
  [[nodiscard]] bool has_room(std::size_t entries = 1) const noexcept {
    return pending_.reserve() >= entries;
  }
  [[nodiscard]] bool empty() const noexcept { return pending_.empty() && !gathers(); }
  // Something waits for its turn to be sent.
  [[nodiscard]] bool gathers() const noexcept { return !gathered_.empty() || !refunds_.empty(); }

  // So that what may share a call stands side by side.
  void order_by_slot();
  // Keeps a bill until take_group(), to be sent together with others; before those taken in advance.
  void gather(Call& call);
  // The next of those gathered that may share a call, in their order; empty when there is none. The one place
  // that knows whose keys may be asked together.
  [[nodiscard]] std::vector<Bill> take_group();
  // The same for what is given back, settled or renewed. False: so much waits already that it is not kept.
  [[nodiscard]] bool gather(std::span<const Refund> refunds);
  // Has those gathered sent by calls of several, `by_slot` of one slot each, while there is room: as much as
  // leaves half of it to bills; `all`: all of it.
  void send_refunds(const std::function<void(std::span<const Refund>)>& send, bool by_slot, bool all);
  // The memory of an entry's bills, to be used again.
  void recycle(std::vector<Bill> bills);

  // The caller has appended the command's bytes to `output()`. REQUIRES has_room().
  void push(Entry entry, Time now) {
    entry.sent = now;
    if (entry.purpose == Purpose::Charge) ++charges_;
    pending_.push_back(std::move(entry));
  }

  // Whom the next reply is for; null when nothing was asked.
  [[nodiscard]] const Entry* first() const noexcept { return pending_.empty() ? nullptr : &pending_.front(); }
  // The same, taken out, where its reply came at `now`; nullopt when nothing was asked.
  [[nodiscard]] std::optional<Entry> pop(Time now);

  // Abandons the calls that were to be answered by `now`, and hands them out. Their entries keep their lines.
  [[nodiscard]] std::vector<Call*> take_expired(Time now);
  // The first without an answer has waited for too long, and with it all that are behind it.
  [[nodiscard]] bool is_overdue(Time now) const noexcept {
    return !pending_.empty() && pending_.front().sent + patience_ <= now;
  }
  // By when the next of the calls still waiting is to be answered, or the first command.
  [[nodiscard]] std::optional<Time> next_deadline() const noexcept;

  // Everything of a connection that has ended, bytes and all; what was gathered as if it had been sent.
  [[nodiscard]] std::vector<Entry> take_all();

  // Bytes that have not left.
  [[nodiscard]] std::string& output() noexcept { return output_; }

 private:
  static constexpr std::size_t kKeptVectors = 64;
  static constexpr std::size_t kMostGathered = 65'536;

  // A call of those gathered has all that it may, or is to share it with no other.
  [[nodiscard]] bool fills_a_call() const noexcept;

  boost::circular_buffer<Entry> pending_;
  base::Duration patience_, short_trip_;
  Time::duration last_trip_{};  // from a command's bytes to its answer
  std::vector<Call*> gathered_;
  std::vector<Refund> refunds_;  // gathered as well
  std::size_t bills_ = 0;        // gathered and pending
  std::size_t charges_ = 0;      // entries of Charge pending
  std::vector<std::vector<Bill>> spare_;
  std::string output_;
};

}  // namespace weir::redis
