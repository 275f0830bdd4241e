// A store's connection to one server, the calls that wait for replies on this connection, and the circuit
// breaker.
//
//   Down ──pause──► Probing ──signed in, scripts loaded, a charge tried──► Up
//     ▲                │ failed                                              │ connection lost, or
//     └────────────────┴─────────────────────────────────────────────────────┘ N failures in a row
//
// These are the states of the circuit breaker. When the session leaves Up, it drops the connection and all
// commands on the connection. Probing is the half-open state: the session connects and charges a test key of
// weir's own, within the timeout of a bill. The session stays down as long as this test fails.
#pragma once

#include "redis/connection/backend.hpp"
#include "redis/connection/common.hpp"
#include "redis/connection/faults.hpp"
#include "redis/connection/log_throttle.hpp"
#include "redis/connection/pipeline.hpp"
#include "redis/connection/resp.hpp"
#include "redis/connection/sentinels.hpp"
#include "redis/connection/wire.hpp"
#include "redis/scripts/bill.hpp"
#include "redis/store/deny_cache.hpp"
#include "redis/store/permit_renewer.hpp"

#include "weir/redis/store.hpp"

#include <array>
#include <coroutine>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::redis {

class Store::Session final : public std::enable_shared_from_this<Store::Session>, public Store::Backend {
 public:
  // `common`: the objects that the sessions of a cluster share, which must outlive this session; null outside
  // a cluster. Copies the settings. Throws std::runtime_error if the system provides no random numbers.
  Session(net::Executor executor, const RedisSettings& settings, StoreLog log, const StoreTuning& tuning,
          LastRefunds* refunds, Common* common = nullptr);

  void start() override;
  void stop() override;

  // Charges a bill, like Store::charge. Must not be called in a cluster.
  [[nodiscard]] net::Task<net::ErrorCode> charge(Charges charges, Outcomes outcomes,
                                                 base::TimePoint& server_now,
                                                 limit::ChargeSet& unanswered) override;
  // Sends a bill. Unlike in a cluster, the bill may have several charges.
  [[nodiscard]] net::ErrorCode begin(Call& call) override;
  void refund(std::span<const Refund> refunds) override;
  [[nodiscard]] bool forget(const limit::Charge& charge) override;
  void hold(const limit::Charge& charge) override { permit_renewer_.hold(charge); }
  void release(const limit::Charge& charge) override { permit_renewer_.release(charge); }
  [[nodiscard]] std::optional<base::TimePoint> refuses(Charges charges, Outcomes outcomes) noexcept override {
    if (state() != StoreState::Up) return std::nullopt;
    return denied_.refuses(charges, outcomes, std::chrono::steady_clock::now());
  }

  // Gathers a call, which the next flush() sends if possible. Called by begin(), and by the cluster for its
  // bills (cluster_bill.cpp). The call must have a deadline and a permit ID. In a cluster, also accepts calls
  // while the session makes its first connection. After an error, the call will not be resumed.
  [[nodiscard]] net::ErrorCode enqueue(Call& call);
  // Sends a command that another node has redirected to this session's node. If `asking`, sends ASKING before
  // the command. Returns false if the pipeline is full, or there is no connection.
  [[nodiscard]] bool send(Pipeline::Entry& entry, bool asking);
  // Sends one refund in a script call of its own. Used if the slot of the key is moving to another node.
  void refund_alone(const Refund& line);
  void answer(Call& call, net::ErrorCode error) { finish(call, error); }
  [[nodiscard]] const base::Endpoint& address() const noexcept { return address_; }

  [[nodiscard]] StoreState state() const noexcept override { return state_.load(std::memory_order_relaxed); }
  [[nodiscard]] const StoreStats& stats() const noexcept override { return stats_; }
  [[nodiscard]] const std::string& last_error() const noexcept override { return last_error_; }
  [[nodiscard]] bool is_quiet() const noexcept override { return !takes_bills() || pipeline_.empty(); }
  [[nodiscard]] base::TimePoint server_time(const limit::Key&, Pipeline::Time now) const noexcept override {
    return server_time(now);
  }

 private:
  using Counter = std::atomic<std::uint64_t>;

  // Functions for the life of the connection (session.cpp). `self` keeps the session alive while run() runs.
  static net::Task<void> run(std::shared_ptr<Session> self);
  [[nodiscard]] net::Task<net::ErrorCode> run_until_closed();
  net::Task<net::ErrorCode> open();
  net::Task<net::ErrorCode> reach();
  net::Task<net::ErrorCode> sign_in();
  net::Task<net::ErrorCode> try_a_charge();
  net::Task<net::ErrorCode> send_greeting(std::string_view bytes);
  net::Task<net::ErrorCode> read_reply();
  net::Task<net::ErrorCode> serve();
  net::Task<void> pause();
  void bound_opening(base::Duration length);
  void give_up_opening();
  void enter_up();
  void enter_down(net::ErrorCode why);
  void hang_up() noexcept;
  void drop_connection(StoreError refusal) noexcept;
  void reconnect();
  [[nodiscard]] std::string name() const;

  // Functions that send commands (session_send.cpp).
  void schedule_flush();
  void pack();
  void flush();
  void wait_for_room();
  void watch_deadlines();
  void watch_until(Pipeline::Time deadline);
  void expire();
  void send_refunds(std::span<const Refund> refunds);
  void send_without_waiter(std::unique_ptr<std::string> command, Pipeline::Entry entry);
  [[nodiscard]] bool ask_again(Call& call);
  [[nodiscard]] bool send_again(Pipeline::Entry& entry);
  void drop_released(Pipeline::Entry& entry);
  void refund_anywhere(std::span<const Refund> refunds);
  void announce_asking(Pipeline::Time now);
  void load_again(Pipeline::Purpose purpose);
  [[nodiscard]] base::TimePoint server_time(Pipeline::Time now) const noexcept;
  void learn_server_time(base::TimePoint server_now) noexcept;
  [[nodiscard]] std::vector<std::coroutine_handle<>> fail_all(StoreError error);

  // Functions that handle replies (session_receive.cpp).
  [[nodiscard]] bool handle_replies();
  void handle(Pipeline::Entry entry, const Reply& reply);
  void handle_charges(Pipeline::Entry entry, const Reply& reply);
  void handle_bills(Pipeline::Entry& entry, const Reply& reply);
  void handle_fault(Pipeline::Entry& entry, const Reply& reply);
  void handle_bill(Call& call, const BillPosition& position, Pipeline::Time sent, const Reply& reply);
  void refund_late_reply(const Pipeline::Bill& bill, const BillPosition& position, const Reply& reply);
  void handle_refund(Pipeline::Entry entry, const Reply& reply);
  void finish(Call& call, net::ErrorCode error);
  void note_failure(net::ErrorCode error, Pipeline::Time asked);
  void report_fault(Faults::Kinds kinds, const std::string& what);
  void open_breaker();

  [[nodiscard]] bool is_available() const noexcept override { return state() == StoreState::Up; }
  // Returns true if bills and refunds may be added to the pipeline: while the session is up, and also while a
  // session of a cluster makes its first connection. If the first connection fails, the bills fail and the
  // refunds are lost.
  [[nodiscard]] bool takes_bills() const noexcept {
    return state() == StoreState::Up || (common_ != nullptr && !tried_ && !stopped_);
  }

  // Adds to a counter. Only the worker's thread writes the counters, so no atomic read-modify-write is
  // needed.
  static void count(Counter& counter, std::uint64_t more = 1) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

  net::Executor executor_;
  const RedisSettings settings_;
  const StoreLog log_;
  const StoreTuning tuning_;

  std::atomic<StoreState> state_{StoreState::Down};
  StoreError refusal_ = StoreError::Away;  // the error with which charges fail while the session is not up
  bool stopped_ = false;
  unsigned failures_in_row_ = 0;
  Pipeline::Time counts_since_{};  // failures of calls that were sent before this time are not counted
  unsigned attempts_ = 0;  // attempts to connect since the last answered bill; each attempt doubles the pause
  std::string last_error_;
  LogThrottle log_throttle_;
  Faults faults_;
  bool tried_ = false;  // true: the first attempt to connect has ended
  Common* const common_;
  StoreStats own_stats_;
  StoreStats& stats_;

  base::Endpoint address_;                // address of the server that the session uses now
  std::shared_ptr<TlsClient> tls_;        // null: no TLS; shared with the connections that use it
  std::shared_ptr<Sentinels> sentinels_;  // null: no Sentinels are configured; shared with their coroutine
  Wire wire_;
  net::Timer pause_timer_;     // first limits the duration of open(), then the pause before the next attempt
  std::uint64_t opening_ = 0;  // number of the current attempt to connect; 0: none
  std::uint64_t openings_ = 0;
  std::array<char, std::size_t{16} * 1024> input_;
  ReplyReader reader_;

  LastRefunds own_refunds_;
  LastRefunds& refunds_;
  std::unique_ptr<DenyCache> own_denied_;  // null in a cluster, whose sessions share one cache
  DenyCache& denied_;
  Pipeline pipeline_;
  net::Timer deadline_timer_;
  bool watching_ = false;  // true: deadline_timer_ is running; it expires at the earliest deadline or before
  bool flush_scheduled_ = false;
  bool blocked_ = false;         // true: the socket's send buffer is full
  bool loading_charge_ = false;  // true: SCRIPT LOAD of charge.lua was sent, and its reply has not arrived
  bool loading_refund_ = false;
  base::Duration server_ahead_;  // Redis's clock minus the steady clock, to estimate Redis's time
  std::string charge_sha_, refund_sha_;
  std::mt19937 random_{std::random_device{}()};

  std::shared_ptr<PermitRenewer> own_permit_renewer_;  // null in a cluster, whose sessions share one object
  PermitRenewer& permit_renewer_;
};

}  // namespace weir::redis
