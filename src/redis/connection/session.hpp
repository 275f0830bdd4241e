// A store's single connection, the calls that wait on it, and the circuit breaker.
//
//   Down ──pause──► Probing ──signed in, scripts loaded, a charge tried──► Up
//     ▲                │ failed                                              │ connection lost, or
//     └────────────────┴─────────────────────────────────────────────────────┘ N failures in a row
//
// These states are the breaker. Leaving Up drops the connection and every command on it. Probing is the
// half-open state: the session connects and tries a charge on a key of weir's own, within the time that a
// bill has. So whatever makes bills fail keeps the session down.
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
  // `common`: what the sessions of a cluster share; it must outlive this session. Null outside a cluster.
  Session(net::Executor executor, const RedisSettings& settings, StoreLog log, const StoreTuning& tuning,
          LastRefunds* refunds, Common* common = nullptr);

  void start() override;
  void stop() override;

  // Only outside a cluster.
  [[nodiscard]] net::Task<net::ErrorCode> charge(Charges charges, Outcomes outcomes,
                                                 base::TimePoint& server_now,
                                                 limit::LineSet& unasked) override;
  // The call may have any number of lines.
  [[nodiscard]] net::ErrorCode begin(Call& call) override;
  void refund(std::span<const Refund> refunds) override;
  [[nodiscard]] bool forget(const limit::Charge& charge) override;
  void hold(const limit::Charge& charge) override { permit_renewer_.hold(charge); }
  void release(const limit::Charge& charge) override { permit_renewer_.release(charge); }
  [[nodiscard]] std::optional<base::TimePoint> refuses(Charges charges, Outcomes outcomes) noexcept override {
    if (state() != StoreState::Up) return std::nullopt;
    return denied_.refuses(charges, outcomes, std::chrono::steady_clock::now());
  }

  // For a session of a cluster (cluster_bill.cpp). The call has a deadline and a permit. Errors are those of
  // begin(). Also accepts calls while the first connection is being made.
  [[nodiscard]] net::ErrorCode enqueue(Call& call);
  // Sends a command that another node passed on. Returns false if there is no room or no connection.
  [[nodiscard]] bool send(Pipeline::Entry& entry, bool asking);
  // Sends a line in a script call of its own, because its slot is moving.
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

  // The connection's life (session.cpp). `self` keeps the session alive for the coroutine.
  static net::Task<void> run(std::shared_ptr<Session> self);
  [[nodiscard]] net::Task<net::ErrorCode> attend();
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
  void rise();
  void fall(net::ErrorCode why);
  void hang_up() noexcept;
  void abort_answer(StoreError refusal) noexcept;
  void hand_off();
  [[nodiscard]] std::string name() const;

  // Sending (session_send.cpp).
  void schedule_flush();
  void pack();
  void flush();
  void wait_for_room();
  void watch_deadlines();
  void watch_until(Pipeline::Time deadline);
  void expire();
  void send_refunds(std::span<const Refund> refunds);
  void tell(std::unique_ptr<std::string> command, Pipeline::Entry entry);
  [[nodiscard]] bool ask_again(Call& call);
  [[nodiscard]] bool send_again(Pipeline::Entry& entry);
  void drop_outlived(Pipeline::Entry& entry);
  void refund_anywhere(std::span<const Refund> refunds);
  void announce_asking(Pipeline::Time now);
  void load_again(Pipeline::Purpose purpose);
  [[nodiscard]] base::TimePoint server_time(Pipeline::Time now) const noexcept;
  void learn_server_time(base::TimePoint server_now) noexcept;
  [[nodiscard]] std::vector<std::coroutine_handle<>> fail_all(StoreError error);

  // Replies (session_receive.cpp).
  [[nodiscard]] bool handle_replies();
  void handle(Pipeline::Entry entry, const Reply& reply);
  void handle_charges(Pipeline::Entry entry, const Reply& reply);
  void handle_bills(Pipeline::Entry& entry, const Reply& reply);
  void handle_fault(Pipeline::Entry& entry, const Reply& reply);
  void handle_bill(Call& call, const BillPosition& place, Pipeline::Time sent, const Reply& reply);
  void take_back(const Pipeline::Bill& bill, const BillPosition& place, const Reply& reply);
  void handle_refund(Pipeline::Entry entry, const Reply& reply);
  void finish(Call& call, net::ErrorCode error);
  void note_failure(net::ErrorCode error, Pipeline::Time asked);
  void report_fault(Faults::Kinds kinds, const std::string& what);
  void open_breaker();

  [[nodiscard]] bool is_there() const noexcept override { return state() == StoreState::Up; }
  // Returns true if bills and refunds may be gathered: the session is up, or a session of a cluster makes its
  // first connection. If that connection fails, they are lost.
  [[nodiscard]] bool takes_bills() const noexcept {
    return state() == StoreState::Up || (common_ != nullptr && !tried_ && !stopped_);
  }

  // Only the worker's thread writes the counters, so no read-modify-write is needed.
  static void count(Counter& counter, std::uint64_t more = 1) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

  net::Executor executor_;
  const RedisSettings settings_;
  const StoreLog log_;
  const StoreTuning tuning_;

  std::atomic<StoreState> state_{StoreState::Down};
  StoreError refusal_ = StoreError::Away;  // the error of charges while not Up
  bool stopped_ = false;
  unsigned failures_in_row_ = 0;
  Pipeline::Time counts_since_{};  // calls sent before the last counted failure belong to that failure
  unsigned attempts_ = 0;          // attempts since the last answered bill; they double the pause
  std::string last_error_;
  LogThrottle log_throttle_;
  Faults faults_;
  bool tried_ = false;  // the first attempt to connect has ended
  Common* const common_;
  StoreStats own_stats_;
  StoreStats& stats_;

  base::Endpoint address_;                // of the current server
  std::shared_ptr<TlsClient> tls_;        // null: no TLS; shared with the wires that use it
  std::shared_ptr<Sentinels> sentinels_;  // null without Sentinels; shared with its coroutine
  Wire wire_;
  net::Timer pause_timer_;     // bounds open(), then paces the attempts
  std::uint64_t opening_ = 0;  // number of the current attempt; 0: none
  std::uint64_t openings_ = 0;
  std::array<char, std::size_t{16} * 1024> input_;
  ReplyReader reader_;

  LastRefunds own_refunds_;
  LastRefunds& refunds_;
  std::unique_ptr<DenyCache> own_denied_;  // null in a cluster, which shares its cache
  DenyCache& denied_;
  Pipeline pipeline_;
  net::Timer deadline_timer_;
  bool watching_ = false;  // deadline_timer_ is set to the earliest deadline or before
  bool flush_scheduled_ = false;
  bool blocked_ = false;         // the socket accepts no more for now
  bool loading_charge_ = false;  // SCRIPT LOAD was sent
  bool loading_refund_ = false;
  // Redis's clock minus the steady clock; this host's clock until Redis has answered. It only selects the
  // calendar windows that a bill carries.
  base::Duration server_ahead_;
  std::string charge_sha_, refund_sha_;
  std::mt19937 random_{std::random_device{}()};

  std::shared_ptr<PermitRenewer> own_permit_renewer_;  // null in a cluster, which shares one
  PermitRenewer& permit_renewer_;
};

}  // namespace weir::redis
