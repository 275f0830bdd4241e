// The state that several weirs share in Redis. A bill is the list of charges of one request. A script in
// Redis checks and charges a bill in one round trip.
//
// Each worker has one store. A store has one connection, or one connection to each master of a cluster. The
// store belongs to the worker's io_context and thread. Any thread may call stats(), state() and why_down().
//
// Guarantees
//  1. `charge` returns within settings.timeout, and at once while the circuit breaker is open. The store
//     itself tests whether Redis is available again, and uses no client's request for the test.
//  2. A late reply is never matched to another command. If a late reply reports a charge, the store refunds
//     the charge.
//  3. After the error ConnectionLost or Timeout, Redis may have charged the bill. After Timeout, the store
//     refunds the charge, unless the connection breaks before the late reply. After any other error Redis has
//     charged nothing.
//  4. The store sends all commands of one iteration of the event loop in one write. Bills of one iteration
//     share calls of the script, which decides each bill separately. If a call fails, all its bills fail. At
//     most `max_pending` commands wait for a reply.
//  5. If any command stays unanswered for patience_of(settings), the store replaces the connection, even if
//     no bill waits. The new connection renews the permits at once.
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
  Up,       // connected; charges are sent
  Down,     // waits until it may try to connect again; every charge fails at once
  Probing,  // connects and makes a test charge; every other charge fails at once
};

enum class LogLevel : std::uint8_t { Info, Warning };

// Receives log lines on the worker's thread, but never one for each request. At most three changes of the
// state are logged in ten seconds. A new reason for the same state is logged at most every ten seconds.
// Failures of single bills are logged at most every ten seconds, too.
using StoreLog = std::function<void(LogLevel, std::string)>;

// Bounds and intervals that have no configuration key.
struct StoreTuning {
  unsigned failures_to_open = 5;  // consecutive failures that open the circuit breaker
  // Upper bound of the random pause before weir connects again. The bound doubles after each failure.
  base::Duration first_backoff{50'000};
  // The longest time to connect, sign in and load scripts. The session uses the larger of this value and
  // min(8 × settings.timeout, 2 s). The default is so short that a failed attempt and the pause after it take
  // less than a second.
  base::Duration open_timeout{600'000};
  base::Duration longest_backoff{300'000};
  std::size_t max_pending = 4096;            // the most commands that wait for a reply
  base::Duration finish_timeout{1'000'000};  // how long finish() waits for the replies to the last refunds
};

// The counters of a store, which never decrease. Only the store's worker writes the counters; any thread may
// read them.
struct StoreStats {
  std::atomic<std::uint64_t> calls{0};     // bills sent
  std::atomic<std::uint64_t> failures{0};  // bills that ended with any error
  std::atomic<std::uint64_t> timeouts{0};  // bills that ended with the error Timeout
  // Changes of charges that the store was to send: refunds, settlements, releases, renewals, and resets of
  // keys.
  std::atomic<std::uint64_t> refunds{0};
  // Changes counted in `refunds` that could not be sent or that Redis did not confirm. Also counts charges
  // whose answer was lost or unreadable: Redis may have made them, and weir cannot refund them.
  std::atomic<std::uint64_t> refunds_lost{0};
  // How many refunded slots (time intervals of a bucket) Redis dropped, because the key's list of free slots
  // was full (src/redis/scripts/gaps.lua).
  std::atomic<std::uint64_t> gaps_lost{0};
  std::atomic<std::uint64_t> connects{0};  // successful connections, including the first one
  // SCRIPT LOAD commands after the error NOSCRIPT. The SCRIPT LOAD commands at the start of a connection are
  // not counted.
  std::atomic<std::uint64_t> script_loads{0};
  std::atomic<std::uint64_t> opened{0};  // how often the circuit breaker opened
  std::atomic<std::uint64_t> writes{0};  // system calls that send
};

class Store {
 public:
  // `refunds` and `units` are shared by all stores of the process. Both must outlive the executor's loop. If
  // `refunds` is null, the store makes its own LastRefunds. If `units` is null, the store prefetches no
  // units, even if charges allow it. Copies the settings. Throws std::runtime_error if the system provides no
  // random numbers.
  Store(net::Executor executor, const RedisSettings& settings, StoreLog log = {},
        const StoreTuning& tuning = {}, LastRefunds* refunds = nullptr, SharedGrants* units = nullptr);
  ~Store();  // calls stop()
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void start();  // begins to connect; must be called once
  // Refunds the prefetched units. Must be called when no more bills arrive, and again until the result is
  // true. Returns true once Redis has answered all commands. Also returns true if Redis is unavailable, or if
  // tuning.finish_timeout has passed since the first call.
  [[nodiscard]] bool finish();
  void stop();  // fails waiting calls with the error Stopped, and closes the connection forever

  // Checks all charges of a bill, then makes all enforced charges or none, exactly as
  // limit::KeyTable::charge does. Sets outcomes[i] to the outcome of charges[i], and `server_now` to Redis's
  // time, to which the times in the outcomes refer. If charge() returns an error, it sets neither outcomes
  // nor `server_now`, except in a cluster (see below). If charge() throws std::bad_alloc, nothing is
  // charged, neither in Redis nor in this process.
  //
  // REQUIRES: 1 ≤ charges.size() == outcomes.size() ≤ kMaxCharges; all charges have different keys. The spans
  // must live until the coroutine returns. The call cannot be cancelled; it ends within settings.timeout.
  //
  // In a cluster, some nodes may be unavailable while others answer. A charge that is paid with prefetched
  // units needs no node. Outcome::ahead says how far the clock of the server that decided a charge is ahead
  // of `server_now`.
  // * If a node is unavailable, charge() returns an error, and `unanswered` names the charges without an
  //   outcome. All other outcomes are set, and their charges are made unless Redis refused one of them.
  // * After any other error, `unanswered` names all charges.
  [[nodiscard]] net::Task<net::ErrorCode> charge(std::span<const limit::Charge> charges,
                                                 std::span<limit::Outcome> outcomes,
                                                 base::TimePoint& server_now, limit::ChargeSet& unanswered);

  // Refuses a bill without a round trip if the store knows that Redis would refuse it now. If so, sets the
  // outcomes to those that Redis would return, and returns Redis's time, to which the outcomes refer. Charges
  // nothing. Returns nullopt if Redis must decide, which is always so if a charge may delay the request.
  // REQUIRES: what charge() requires. If the cost of a charge depends on the response, the caller may use the
  // result only if a penalty refuses that charge (Outcome::penalty_left).
  [[nodiscard]] std::optional<base::TimePoint> refuses(std::span<const limit::Charge> charges,
                                                       std::span<limit::Outcome> outcomes) noexcept;

  // Refunds one charge. `departure`: the time at which the charge allowed the request to depart. Returns
  // without waiting for a reply. REQUIRES: charge.lease == 0.
  void refund(const limit::Charge& charge, base::TimePoint departure);
  // Refunds one charge of any kind. `charged_at`: when the charge was made, by Redis's time. `outcome`: the
  // outcome of the charge.
  void refund(const limit::Charge& charge, base::TimePoint charged_at, const limit::Outcome& outcome);

  // Changes the cost of a charge from charge.cost to `actual` (limit/settle.hpp). `charged_at`: when the
  // charge was made, by Redis's time. Must be called at most once for a charge. Returns without waiting for a
  // reply. REQUIRES: limit::settles(*charge.limiter).
  void settle(const limit::Charge& charge, base::TimePoint charged_at, limit::Cost actual);

  // Releases the permit of a charge. Until this call, the store renews the permit. Must be called once for a
  // charge; the destructor of redis::Permit does so. REQUIRES: limit::holds(*charge.limiter).
  void release(const limit::Charge& charge);
  // Stores a permit for a request that was admitted while Redis was unavailable. The store writes the permit
  // to Redis as soon as Redis is available.
  void hold(const limit::Charge& charge);

  // Sets `outcome` to the outcome that the charge would have now. Charges and renews nothing, neither in
  // Redis nor in this process. Counts prefetched units as spent, because Redis has debited them. Returns the
  // same errors as charge(). Ends within settings.timeout.
  [[nodiscard]] net::Task<net::ErrorCode> peek(limit::Charge charge, limit::Outcome& outcome,
                                               base::TimePoint& server_now);
  // Returns true, and sets `outcome`, if this process has enough prefetched units to pay for the charge.
  [[nodiscard]] bool holds_for(const limit::Charge& charge, limit::Outcome& outcome) const;
  // Resets the key in Redis, and drops this process's prefetched units and cached states of the key. Returns
  // without waiting for a reply. Later commands see the reset key. REQUIRES: !limit::holds(*charge.limiter).
  void forget(const limit::Charge& charge);

  // Returns the estimated present time of the Redis server that has the key, by that server's clock.
  [[nodiscard]] base::TimePoint server_time(const limit::Key& key) const noexcept;

  [[nodiscard]] StoreState state() const noexcept;
  [[nodiscard]] const StoreStats& stats() const noexcept;
  // Returns why the store is not up. If the store is up, returns the last error reply. Empty if no error has
  // occurred. Must be called on the worker's thread.
  [[nodiscard]] const std::string& last_error() const noexcept;
  // Returns why the store is not up; in a cluster, why one of the nodes is not up. Empty while the store is
  // up, and before the first attempt to connect has ended. Thread-safe.
  [[nodiscard]] std::string why_down() const;

 private:
  using Charges = std::span<const limit::Charge>;
  using Outcomes = std::span<limit::Outcome>;
  class Backend;
  class Session;
  class Cluster;
  class PrefetchingStore;
  struct Common;
  [[nodiscard]] bool spends_prefetched(Charges charges) const noexcept;

  // Shared with handlers that wait on the io_context and may run after the store is destroyed.
  std::shared_ptr<Backend> backend_;
  base::Duration finish_timeout_;
  std::optional<std::chrono::steady_clock::time_point> finish_by_;
  std::shared_ptr<PrefetchingStore> prefetching_;  // null: the store prefetches no units
};

}  // namespace weir::redis
