// The state that several weirs share in Redis. One script in Redis checks and charges a bill in one round
// trip.
//
// Each worker has one store, with one connection, or with one connection to each master of a cluster. The
// store belongs to the worker's io_context and thread. Any thread may call stats(), state() and why_down().
//
// Guarantees
//  1. `charge` returns within settings.timeout, and at once while the breaker is open. The store itself tries
//     whether Redis is back; no client's request does.
//  2. A late reply is never matched to another command. If it reports a charge, the charge is refunded.
//  3. After ConnectionLost, Redis may have carried out the charge. After Timeout it may too, if the
//     connection ends before the late reply. After any other error Redis charged nothing.
//  4. All commands of one loop turn leave in one write. The turn's bills share script calls; the script
//     decides each bill separately. If a call fails, all its bills fail. At most `max_pending` commands wait.
//  5. A connection that leaves any command unanswered for patience_of(settings) is replaced, even if no bill
//     waits. The new connection renews the permits at once.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/slot_hash.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"
#include "weir/redis/error.hpp"
#include "weir/redis/last_refunds.hpp"
#include "weir/redis/redis_settings.hpp"
#include "weir/redis/shared_grants.hpp"

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
  Up,       // waits before the next attempt; every charge fails at once
  Down,     // waiting before the next attempt; every charge fails at once
  Probing,  // connects and tries a charge of its own; every other charge still fails at once
};

enum class LogLevel : std::uint8_t { Info, Warning };

// Called on the worker's thread, never per request. Each change of state is logged, at most three times in
// ten seconds. A new reason for the same state, or a failure of some bills only, is logged at most every ten
// seconds.
using StoreLog = std::function<void(LogLevel, std::string)>;

// Bounds and intervals that have no configuration key.
struct StoreTuning {
  unsigned failures_to_open = 5;         // consecutive failures that open the breaker
  base::Duration first_backoff{50'000};  // bound of the first pause; doubles each time, with full jitter
  // Chosen so that weir is back within a second of Redis: one lost attempt and one pause.
  base::Duration open_timeout{600'000};  // to connect, sign in, load scripts; or eight timeouts, if longer
  base::Duration longest_backoff{300'000};
  std::size_t max_pending = 4096;            // commands without an answer
  base::Duration finish_timeout{1'000'000};  // wait in finish() for the answers to the last refunds
};

// The counters of a store. The worker writes them, any thread may read them; they only grow.
struct StoreStats {
  std::atomic<std::uint64_t> calls{0};         // bills sent
  std::atomic<std::uint64_t> failures{0};      // of the calls, those answered with any error
  std::atomic<std::uint64_t> timeouts{0};      // of the failures, those that met the deadline
  std::atomic<std::uint64_t> refunds{0};       // lines refunded, settled or renewed
  std::atomic<std::uint64_t> refunds_lost{0};  // of the refunds, those that Redis did not confirm
  std::atomic<std::uint64_t> gaps_lost{0};     // returned slots that found no room (gaps.lua)
  std::atomic<std::uint64_t> connects{0};      // successful connections; all but the first are reconnects
  std::atomic<std::uint64_t> script_loads{0};  // script loads after NOSCRIPT, beyond those of each connect
  std::atomic<std::uint64_t> opened{0};        // times that the breaker opened
  std::atomic<std::uint64_t> writes{0};        // send calls
};

class Store {
 public:
  // `refunds` and `units` are shared by all stores of the process and must outlive the executor's loop. If
  // `refunds` is null, the store has its own. If `units` is null, the store takes no units in advance, even
  // if charges ask for it.
  Store(net::Executor executor, const RedisSettings& settings, StoreLog log = {},
        const StoreTuning& tuning = {}, LastRefunds* refunds = nullptr, SharedGrants* units = nullptr);
  ~Store();  // stops
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void start();  // begins to connect; call once
  // Must be called when no more bills arrive, and again until it returns true. Gives back units held in
  // advance and waits for Redis's answers. Returns true if stop() would lose nothing, if Redis is away, or if
  // tuning.finish_timeout has passed since the first call.
  [[nodiscard]] bool finish();
  void stop();  // answers waiting calls with Stopped and closes; final

  // Checks all lines, then charges all enforced lines or none, exactly as limit::KeyTable::charge does.
  // outcomes[i] answers charges[i], counted from `server_now`, which is Redis's time. Both are set only on
  // success. REQUIRES 1 ≤ charges.size() == outcomes.size() ≤ kMaxCharges, and that no two lines have one
  // key. The spans must live until the coroutine returns. The call cannot be cancelled; it ends within
  // settings.timeout.
  //
  // In a cluster, some nodes may answer while others are away; units held in advance need no node. Then
  // charge() returns an error, and `unasked` names the lines without an answer. The other outcomes are set,
  // and those lines are charged unless one of them was refused. After any other error, `unasked` names all
  // lines. Outcome::ahead says which clock decided a line. Throws std::bad_alloc; then nothing was charged,
  // in Redis or here.
  [[nodiscard]] net::Task<net::ErrorCode> charge(std::span<const limit::Charge> charges,
                                                 std::span<limit::Outcome> outcomes,
                                                 base::TimePoint& server_now, limit::LineSet& unasked);

  // Returns Redis's time if the store knows that Redis would refuse the bill now. Then nothing is charged,
  // and the outcomes are those that Redis would return, counted from that time. Returns nullopt if Redis must
  // be asked, which is always so if a line may delay. REQUIRES as for charge(), and that answers settle no
  // line's rule.
  [[nodiscard]] std::optional<base::TimePoint> refuses(std::span<const limit::Charge> charges,
                                                       std::span<limit::Outcome> outcomes) noexcept;

  // Refunds one charge whose promised departure was `departure`. Returns without waiting for a reply.
  // REQUIRES charge.lease == 0.
  void refund(const limit::Charge& charge, base::TimePoint departure);
  // Refunds any charge that was taken at `charged_at` with `outcome`.
  void refund(const limit::Charge& charge, base::TimePoint charged_at, const limit::Outcome& outcome);

  // Changes the cost of a charge from charge.cost to `actual` (limit/settle.hpp). The charge was taken at
  // `charged_at`, by Redis's time. Must be called at most once for a charge. Returns without waiting for a
  // reply. REQUIRES limit::settles(*charge.limiter).
  void settle(const limit::Charge& charge, base::TimePoint charged_at, limit::Cost actual);

  // Releases a charge's permit. The store renews the permit until then. Must be called once for a charge;
  // redis::Permit does so. REQUIRES limit::holds(*charge.limiter).
  void release(const limit::Charge& charge);
  // Holds a permit for a request that was admitted while Redis was away. The store enters the permit in Redis
  // once Redis is back.
  void hold(const limit::Charge& charge);

  // Returns the outcome that one line would have now. Nothing is charged, kept or renewed, in Redis or here.
  // Units that this process holds in advance count as spent, because Redis has debited them. Errors are those
  // of charge(). Ends within settings.timeout.
  [[nodiscard]] net::Task<net::ErrorCode> look(limit::Charge charge, limit::Outcome& outcome,
                                               base::TimePoint& server_now);
  // Returns true, and sets the outcome, if units held in advance would admit the charge.
  [[nodiscard]] bool holds_for(const limit::Charge& charge, limit::Outcome& outcome) const;
  // Resets the key, in Redis and in all that this process holds or knows of it. Returns without waiting for a
  // reply. Commands sent later see the reset state. REQUIRES !limit::holds(*charge.limiter).
  void forget(const limit::Charge& charge);

  [[nodiscard]] StoreState state() const noexcept;
  [[nodiscard]] const StoreStats& stats() const noexcept;
  // Returns why the store is not up, or the last error reply. Empty if there never was an error. Must be
  // called on the worker's thread.
  [[nodiscard]] const std::string& last_error() const noexcept;
  // Returns why the store is not up; in a cluster, the reason of one node. Empty while the store is up, and
  // before the first attempt has ended. Thread-safe.
  [[nodiscard]] std::string why_down() const;

 private:
  using Charges = std::span<const limit::Charge>;
  using Outcomes = std::span<limit::Outcome>;
  class Backend;
  class Session;
  class Cluster;
  class PrefetchingStore;
  struct Common;
  [[nodiscard]] bool pays_here(Charges charges) const noexcept;

  // Shared with pending handlers on the io_context, which may end after the store is destroyed.
  std::shared_ptr<Backend> backend_;
  base::Duration finish_timeout_;
  std::optional<std::chrono::steady_clock::time_point> finish_by_;
  std::shared_ptr<PrefetchingStore> prefetching_;  // null: no units are taken in advance
};

}  // namespace weir::redis
