// What has been sent and not yet answered, in order, and the bytes that still have to leave. Pure: no socket,
// no clock; the session moves the bytes and says what time it is.
//
// Invariants
//  1. Redis answers in order: the front of the queue is what the next reply is for, abandoned or not. An
//  abandoned
//     command keeps its place, so a late reply meets its own entry, and what it charged is given back.
//  2. A call is in the queue at most once, and no longer once it has its answer.
//  3. Deadlines ascend but for commands sent again after NOSCRIPT, which keep theirs.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/net/asio.hpp"
#include "weir/redis/last_refunds.hpp"

#include <chrono>
#include <coroutine>
#include <cstddef>
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
  net::ErrorCode error;
  std::coroutine_handle<> caller;  // resumed on this thread
  std::uint64_t permit = 0;        // of what it holds; set when it is sent
};

class Pipeline {
 public:
  using Time = std::chrono::steady_clock::time_point;

  enum class Purpose : std::uint8_t {
    Charge,
    Refund,
    LoadCharge,  // SCRIPT LOAD after NOSCRIPT
    LoadRefund,
  };

  struct Entry {
    Purpose purpose;
    bool resent = false;                     // after NOSCRIPT; not twice
    Call* call = nullptr;                    // of Charge; null once abandoned
    Time sent{};                             // of Charge
    Time deadline{};                         // of Charge
    LastRefunds::Groups refunded = 0;        // of Refund: whose
    std::unique_ptr<std::string> command;    // of Refund: its bytes, in case they have to leave again
    std::vector<limit::Charge> abandoned{};  // of Charge, once abandoned: what a late reply may have charged
    std::uint64_t permit = 0;                // of Charge: as its call's
  };

  explicit Pipeline(std::size_t max_pending) : pending_(max_pending) {}

  [[nodiscard]] bool full() const noexcept { return pending_.full(); }
  [[nodiscard]] bool empty() const noexcept { return pending_.empty(); }

  // The caller has appended the command's bytes to `output()`. REQUIRES !full().
  void push(Entry entry) { pending_.push_back(std::move(entry)); }

  // Whom the next reply is for; nullopt when nothing was asked.
  [[nodiscard]] std::optional<Entry> pop();

  // Abandons the calls that were to be answered by `now`, and hands them out. Their entries keep their lines.
  [[nodiscard]] std::vector<Call*> take_expired(Time now);
  // The earliest deadline among calls still waiting.
  [[nodiscard]] std::optional<Time> next_deadline() const noexcept;

  // Everything of a connection that has ended, bytes and all.
  [[nodiscard]] std::vector<Entry> take_all();

  // Bytes that have not left.
  [[nodiscard]] std::string& output() noexcept { return output_; }

 private:
  boost::circular_buffer<Entry> pending_;
  std::string output_;
};

}  // namespace weir::redis
