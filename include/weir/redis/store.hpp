// The state of keys that several weirs share: a bill is checked and charged by one script in Redis, in one
// round trip.
//
// One store a worker, with one connection of its own, or one to each master of a cluster. It belongs to the
// worker's io_context and is touched by that thread alone, but for stats(), state() and why_down(), which any
// thread may read.
//
// What a caller may rely on
//  1. `charge` answers within settings.timeout, and at once while the breaker is open. It is never a client's
//  request
//     that finds out whether Redis is back: the store asks by itself.
//  2. A reply that comes too late is never taken for another command's, and what it charged is given back.
//  3. After ConnectionLost the charge may have been carried out all the same, and after Timeout where the
//  connection
//     is lost before the late reply; after every other error nothing was charged there.
//  4. Commands of one turn of the loop leave in one write, and its bills share calls of the script, each
//  decided on its own. What goes wrong with a call befalls all its bills. Memory is bounded: so many commands
//  wait, no more.
//  5. A connection on which anything has gone unanswered for patience_of(settings) is given up for another
//  one, also when no bill was asked meanwhile; what is held is told there at once.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/place.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"
#include "weir/redis/error.hpp"
#include "weir/redis/last_refunds.hpp"
#include "weir/redis/redis_settings.hpp"
#include "weir/redis/unit_leases.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace weir::redis {

struct Refund;

enum class StoreState : std::uint8_t {
  Up,       // asked for every bill
  Down,     // waiting before the next attempt; every charge fails at once
  Probing,  // connecting and trying a charge of its own; every other one still fails at once
};

enum class LogLevel : std::uint8_t { Info, Warning };

// Called on the worker's thread, once per change of state (three times in ten seconds at most), never per
// request; of other reasons for the same state, and of what fails for some bills alone, every ten seconds at
// most.
using StoreLog = std::function<void(LogLevel, std::string)>;

// Bounds and paces that no configuration names.
struct StoreTuning {
  unsigned failures_to_open = 5;         // in a row, until the breaker opens
  base::Duration first_backoff{50'000};  // the bound of the first pause; doubled each time, with full jitter
  // So that weir is back within a second of Redis: an attempt that was swallowed, and a pause.
  base::Duration open_timeout{600'000};  // to connect, sign in and load the scripts; or eight time-outs
  base::Duration longest_backoff{300'000};
  std::size_t max_pending = 4096;            // commands without an answer yet
  base::Duration finish_timeout{1'000'000};  // for the answers to what is given back when it ends
};

// Written by the worker, readable by anyone; they only grow.
struct StoreStats {
  std::atomic<std::uint64_t> calls{0};         // bills asked for
  std::atomic<std::uint64_t> failures{0};      // of those, answered with an error of any kind
  std::atomic<std::uint64_t> timeouts{0};      // of the failures, those by the deadline
  std::atomic<std::uint64_t> refunds{0};       // lines that are given back, settled or renewed
  std::atomic<std::uint64_t> refunds_lost{0};  // of those, not carried out as far as we know
  std::atomic<std::uint64_t> gaps_lost{0};     // of what went back to leased buckets: had no room (gaps.lua)
  std::atomic<std::uint64_t> connects{0};      // connections that came up; reconnects are all but the first
  std::atomic<std::uint64_t> script_loads{0};  // after NOSCRIPT, beyond those of each connect
  std::atomic<std::uint64_t> opened{0};        // times that the breaker opened
  std::atomic<std::uint64_t> writes{0};        // send calls
};

class Store {
 public:
  // `refunds`: of all stores of this process, outlives the executor's loop; null: this one has its own.
  // `units`: likewise; null: nothing is taken in advance, whatever charges say.
  Store(net::Executor executor, const RedisSettings& settings, StoreLog log = {},
        const StoreTuning& tuning = {}, LastRefunds* refunds = nullptr, UnitLeases* units = nullptr);
  ~Store();  // stops
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void start();  // begins to connect; once
  // Nobody asks any more: what is held in advance goes back, and Redis's answers to whatever it was told are
  // waited for. True: stop() loses nothing of it, or Redis is away, or has taken tuning.finish_timeout since
  // this was first called; else it is to be called again.
  [[nodiscard]] bool finish();
  void stop();  // answers what waits with Stopped and closes; for good

  // Checks all lines, then charges all that are enforced, or none, exactly as limit::KeyTable::charge does;
  // outcomes[i] answers charges[i], counted from `server_now`, Redis's own time. Both are set on success
  // only. REQUIRES 1 ≤ charges.size() == outcomes.size() ≤ kMaxCharges; no two lines with one key; the spans
  // live until the coroutine has its answer. Cannot be cancelled; it never lasts longer than
  // settings.timeout.
  //
  // In a cluster some nodes may answer while others are away, and what was taken in advance needs nobody.
  // Then there is an error, and `unasked` says of which lines: the others are set, and charged unless one of
  // them was refused. Else, after an error, it is all. Which clock decided each line, its outcome says
  // (`ahead`). Throws std::bad_alloc; then nothing was charged, here or there.
  [[nodiscard]] net::Task<net::ErrorCode> charge(std::span<const limit::Charge> charges,
                                                 std::span<limit::Outcome> outcomes,
                                                 base::TimePoint& server_now, limit::LineSet& unasked);

  // Returns Redis's time if Redis is known to refuse such a bill then, so that there is no need to ask:
  // nothing is charged, and the outcomes are what it would say, counted from that time as those of charge().
  // Nullopt: Redis has to be asked, as always where a line may delay. REQUIRES as for charge(), and that no
  // line's rule is settled by answers.
  [[nodiscard]] std::optional<base::TimePoint> refuses(std::span<const limit::Charge> charges,
                                                       std::span<limit::Outcome> outcomes) noexcept;

  // Gives back one charge whose promised departure was `departure`. Sent and forgotten. REQUIRES
  // charge.lease == 0.
  void refund(const limit::Charge& charge, base::TimePoint departure);
  // The same of any charge, taken at `charged_at` with that outcome.
  void refund(const limit::Charge& charge, base::TimePoint charged_at, const limit::Outcome& outcome);

  // Makes a charge of charge.cost, taken at `charged_at` by Redis's time, one of `actual` (limit/settle.hpp).
  // Once for each. Sent and forgotten. REQUIRES limit::settles(*charge.limiter).
  void settle(const limit::Charge& charge, base::TimePoint charged_at, limit::Cost actual);

  // What a charge holds is renewed by the store until it is released, once for each; redis::Permit sees to
  // it. REQUIRES limit::holds(*charge.limiter).
  void release(const limit::Charge& charge);
  // Redis could not be asked, and the request goes on: it hears of what that holds as soon as it is there.
  void hold(const limit::Charge& charge);

  // What one line would be answered now, and nothing is charged, kept or renewed, here or there. What this
  // process has taken in advance does not count: it is spent already, there. An error as of charge(). It ends
  // within settings.timeout.
  [[nodiscard]] net::Task<net::ErrorCode> look(limit::Charge charge, limit::Outcome& outcome,
                                               base::TimePoint& server_now);
  // Whether it would be admitted from units that were taken in advance; then the outcome is set.
  [[nodiscard]] bool holds_for(const limit::Charge& charge, limit::Outcome& outcome) const;
  // As if nobody had ever asked for the key, there and in what this process holds or knows of it. Sent, and
  // not waited for: what is looked at from now on comes after. REQUIRES !limit::holds(*charge.limiter).
  void forget(const limit::Charge& charge);

  [[nodiscard]] StoreState state() const noexcept;
  [[nodiscard]] const StoreStats& stats() const noexcept;
  // Why the store is not up, or the last error reply; empty if there never was one. The worker's thread only.
  [[nodiscard]] const std::string& last_error() const noexcept;
  // Why the store is not up, of a cluster one node's reason; empty while it is, and before the first attempt
  // has ended. Any thread.
  [[nodiscard]] std::string why_down() const;

 private:
  using Charges = std::span<const limit::Charge>;
  using Outcomes = std::span<limit::Outcome>;
  class Backend;
  class Session;
  class Cluster;
  class Leasing;
  struct Common;
  [[nodiscard]] bool pays_here(Charges charges) const noexcept;

  // Shared with the handlers under way on the io_context, which end only after the store has gone.
  std::shared_ptr<Backend> backend_;
  base::Duration finish_timeout_;
  std::optional<std::chrono::steady_clock::time_point> finish_by_;
  std::shared_ptr<Leasing> leasing_;  // null: nothing is taken in advance
};

}  // namespace weir::redis
