// A store's inside: its one connection, who waits on it, and the breaker.
//
//   Down ──pause──► Probing ──signed in, scripts loaded, a charge tried──► Up
//     ▲                │ failed                                              │ connection lost, or
//     └────────────────┴─────────────────────────────────────────────────────┘ N failures in a row
//
// The breaker is this circle: leaving Up drops the connection, and with it every command under way, so
// half-open is the connect and the trial that the session makes by itself: the script that charges, on a key
// of weir's own, has to answer within the time that a bill has. So whatever makes bills fail keeps it down.
#pragma once

#include "redis/connection/backend.hpp"
#include "redis/connection/common.hpp"
#include "redis/connection/complaint.hpp"
#include "redis/connection/faults.hpp"
#include "redis/connection/pipeline.hpp"
#include "redis/connection/resp.hpp"
#include "redis/connection/sentinels.hpp"
#include "redis/connection/wire.hpp"
#include "redis/scripts/bill.hpp"
#include "redis/store/deny_cache.hpp"
#include "redis/store/holding.hpp"

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
  // `common`: of a session that is one of a cluster's, which outlives it; null: it is alone.
  Session(net::Executor executor, const RedisSettings& settings, StoreLog log, const StoreTuning& tuning,
          LastRefunds* refunds, Common* common = nullptr);

  void start() override;
  void stop() override;

  // Where it is alone.
  [[nodiscard]] net::Task<net::ErrorCode> charge(Charges charges, Outcomes outcomes,
                                                 base::TimePoint& server_now,
                                                 limit::LineSet& unasked) override;
  // Of any number of lines.
  [[nodiscard]] net::ErrorCode begin(Call& call) override;
  void refund(std::span<const Refund> refunds) override;
  [[nodiscard]] bool forget(const limit::Charge& charge) override;
  void hold(const limit::Charge& charge) override { holding_.hold(charge); }
  void release(const limit::Charge& charge) override { holding_.release(charge); }
  [[nodiscard]] std::optional<base::TimePoint> refuses(Charges charges, Outcomes outcomes) noexcept override {
    if (state() != StoreState::Up) return std::nullopt;
    return denied_.refuses(charges, outcomes, std::chrono::steady_clock::now());
  }

  // Of one of a cluster's (cluster_bill.cpp). A call with a deadline and a permit, as for begin(): also while
  // the first connection is being made.
  [[nodiscard]] net::ErrorCode enqueue(Call& call);
  // Takes a command over that another node was told; false: there is no room, or nobody.
  [[nodiscard]] bool send(Pipeline::Entry& entry, bool asking);
  // A line that shares no call, for its slot is moving.
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

  // The life of the connection (session.cpp). `self` keeps the session alive for the coroutine.
  static net::Awaitable<void> run(std::shared_ptr<Session> self);
  [[nodiscard]] net::Awaitable<net::ErrorCode> attend();
  net::Awaitable<net::ErrorCode> open();
  net::Awaitable<net::ErrorCode> reach();
  net::Awaitable<net::ErrorCode> sign_in();
  net::Awaitable<net::ErrorCode> try_a_charge();
  net::Awaitable<net::ErrorCode> send_greeting(std::string_view bytes);
  net::Awaitable<net::ErrorCode> read_reply();
  net::Awaitable<net::ErrorCode> serve();
  net::Awaitable<void> pause();
  void bound_opening(base::Duration length);
  void give_up_opening();
  void rise();
  void fall(net::ErrorCode why);
  void hang_up() noexcept;
  void break_off(StoreError refusal) noexcept;
  void move_on();
  [[nodiscard]] std::string name() const;

  // What leaves (traffic.cpp).
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

  // What comes back (replies.cpp).
  [[nodiscard]] bool handle_replies();
  void handle(Pipeline::Entry entry, const Reply& reply);
  void handle_charges(Pipeline::Entry entry, const Reply& reply);
  void handle_bills(Pipeline::Entry& entry, const Reply& reply);
  void handle_fault(Pipeline::Entry& entry, const Reply& reply);
  void handle_bill(Call& call, const BillPlace& place, Pipeline::Time sent, const Reply& reply);
  void take_back(const Pipeline::Bill& bill, const BillPlace& place, const Reply& reply);
  void handle_refund(Pipeline::Entry entry, const Reply& reply);
  void finish(Call& call, net::ErrorCode error);
  void note_failure(net::ErrorCode error, Pipeline::Time asked);
  void report_fault(Faults::Kinds kinds, const std::string& what);
  void open_breaker();

  [[nodiscard]] bool is_there() const noexcept override { return state() == StoreState::Up; }
  // Whether bills may be gathered, and what is given back: it is up, or connecting for the first time where
  // others send on. What fails then is lost.
  [[nodiscard]] bool takes_bills() const noexcept {
    return state() == StoreState::Up || (common_ != nullptr && !tried_ && !stopped_);
  }

  // Only the worker's thread writes: no read-modify-write is needed.
  static void count(Counter& counter, std::uint64_t more = 1) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

  net::Executor executor_;
  const RedisSettings settings_;
  const StoreLog log_;
  const StoreTuning tuning_;

  std::atomic<StoreState> state_{StoreState::Down};
  StoreError refusal_ = StoreError::Away;  // what a charge is told while not Up
  bool stopped_ = false;
  unsigned failures_in_row_ = 0;
  Pipeline::Time counts_since_{};  // a call that was asked before the last failure counted is of that one
  unsigned attempts_ = 0;          // since the last bill that was answered; doubles the pause
  std::string last_error_;
  Complaint complaint_;
  Faults faults_;
  bool tried_ = false;  // the first attempt to connect has ended
  Common* const common_;
  StoreStats own_stats_;
  StoreStats& stats_;

  base::Endpoint address_;                // of the server of the moment
  std::shared_ptr<TlsClient> tls_;        // null: plain; shared with the wires that are made of it
  std::shared_ptr<Sentinels> sentinels_;  // null but in their topology; shared with its coroutine under way
  Wire wire_;
  net::Timer pause_timer_;     // bounds open(), then paces the attempts
  std::uint64_t opening_ = 0;  // the attempt under way; 0 when none is
  std::uint64_t openings_ = 0;
  std::array<char, std::size_t{16} * 1024> input_;
  ReplyReader reader_;

  LastRefunds own_refunds_;
  LastRefunds& refunds_;
  std::unique_ptr<DenyCache> own_denied_;  // null: another's is used
  DenyCache& denied_;
  Pipeline pipeline_;
  net::Timer deadline_timer_;
  bool watching_ = false;  // deadline_timer_ is set, for no later than the earliest deadline
  bool flush_scheduled_ = false;
  bool blocked_ = false;         // the socket takes no more for now
  bool loading_charge_ = false;  // SCRIPT LOAD is under way
  bool loading_refund_ = false;
  // Redis's clock over the steady one, as far as we know: this host's until Redis says otherwise. It only
  // chooses which windows of a calendar a bill tells of.
  base::Duration server_ahead_;
  std::string charge_sha_, refund_sha_;
  std::mt19937 random_{std::random_device{}()};

  std::shared_ptr<Holding> own_holding_;  // null: another's is used
  Holding& holding_;
};

}  // namespace weir::redis
