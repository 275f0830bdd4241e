// The implementation of a store on a Redis Cluster: the map of the cluster's slots, a session for each
// master, and bills whose keys are on several masters.
//
//   seeds ──CLUSTER NODES──► map of slots ──► a session for each master with slots
//     ▲                                          │ MOVED, a connection lost, a breaker opened
//     └──────────── read again ◄─────────────────┘
//
// Each session has its own circuit breaker, so the loss of a node affects only the keys on that node. The
// sessions share the worker's deny cache, permits and counters. Belongs to the store and its thread.
#pragma once

#include "redis/cluster/cluster_slots.hpp"
#include "redis/connection/log_throttle.hpp"
#include "redis/connection/request_reply.hpp"
#include "redis/connection/session.hpp"
#include "redis/store/permit_renewer.hpp"

#include "weir/redis/store.hpp"

#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::redis {

class Store::Cluster final : public std::enable_shared_from_this<Store::Cluster>, public Store::Backend {
 public:
  Cluster(net::Executor executor, const RedisSettings& settings, StoreLog log, const StoreTuning& tuning,
          LastRefunds* refunds);

  void start() override;
  void stop() override;

  [[nodiscard]] net::Task<net::ErrorCode> charge(Charges charges, Outcomes outcomes,
                                                 base::TimePoint& server_now,
                                                 limit::ChargeSet& unanswered) override;
  [[nodiscard]] net::ErrorCode begin(Call& call) override;
  [[nodiscard]] std::optional<base::TimePoint> refuses(Charges charges, Outcomes outcomes) noexcept override;
  void refund(std::span<const Refund> refunds) override;
  [[nodiscard]] bool forget(const limit::Charge& charge) override;
  [[nodiscard]] bool is_quiet() const noexcept override;
  void hold(const limit::Charge& charge) override { permit_renewer_->hold(charge); }
  void release(const limit::Charge& charge) override { permit_renewer_->release(charge); }
  [[nodiscard]] base::TimePoint server_time(const limit::Key& key,
                                            Pipeline::Time now) const noexcept override;
  [[nodiscard]] StoreState state() const noexcept override { return state_.load(std::memory_order_relaxed); }
  [[nodiscard]] const StoreStats& stats() const noexcept override { return stats_; }
  [[nodiscard]] const std::string& last_error() const noexcept override { return last_error_; }

  // Handles an error reply to a bill; `from`: the session that received the reply. If the error is a
  // redirection, sends the bill to the node that the error names. If the slot is moving, may send the bill to
  // the same node again, or sets Call::is_split and ends the call: its charges must be sent one by one.
  // Returns false if it has done none of this. The caller must then end the call with the error.
  [[nodiscard]] bool resend(Call& call, const Pipeline::Entry& entry, std::string_view error, Session& from);
  // Handles an error reply to a command of refunds. If the error is a redirection, sends the command to the
  // node that the error names. If the slot is moving, may send each refund of the command alone instead.
  // Returns false if it has sent nothing.
  [[nodiscard]] bool resend(Pipeline::Entry& entry, std::string_view error, Session& from);
  // Must be called when the session comes up or goes down.
  void changed(const Session& session);
  // Returns a slot hash (the part of a key that selects its slot) for one of the slots that the session's
  // node serves. Returns 0 if the node has no slots.
  [[nodiscard]] limit::SlotHash slot_hash_at(const Session& session) const noexcept;

 private:
  class Parts;
  struct Round;

  static net::Task<void> watch(std::shared_ptr<Cluster> self);
  net::Task<void> read_map();
  net::Task<net::ErrorCode> ask(const base::Endpoint& node, std::string& why);
  net::Task<void> pause(base::Duration length);
  void take(SlotMap map);
  void read_slots();

  [[nodiscard]] std::vector<base::Endpoint> nodes_to_ask() const;
  [[nodiscard]] std::shared_ptr<Session> session_at(const base::Endpoint& address);
  [[nodiscard]] Session* owner(Slot slot) const noexcept;
  [[nodiscard]] Session* follow(const Redirection& redirection);
  void retire_session(const std::shared_ptr<Session>& session);
  [[nodiscard]] bool is_available() const noexcept override { return map_.has_value(); }
  [[nodiscard]] bool is_whole() const noexcept;
  [[nodiscard]] std::string what_is_missing() const;
  void report_state();
  static void count(std::atomic<std::uint64_t>& counter) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  [[nodiscard]] unsigned send(Parts& parts, Pipeline::Time deadline);
  void refund_parts(const Parts& parts);

  net::Executor executor_;
  const RedisSettings settings_;
  const StoreLog log_;
  const StoreTuning tuning_;
  LastRefunds own_refunds_;
  LastRefunds& refunds_;
  StoreStats stats_;
  DenyCache denied_;
  std::shared_ptr<PermitRenewer> permit_renewer_;  // shared with the handler of the renewal timer
  Common common_;

  std::optional<SlotMap> map_;
  // The session of each master, in the order of map_->masters(); null: the master has no slots.
  std::vector<std::shared_ptr<Session>> by_master_;
  std::vector<std::shared_ptr<Session>> sessions_;  // all sessions, also of masters without slots
  std::atomic<StoreState> state_{StoreState::Down};
  std::string last_error_;
  LogThrottle log_throttle_;
  bool stopped_ = false;

  RequestReply query_;
  net::Timer timer_;              // runs during the pause between two requests for the map of slots
  bool is_map_outdated_ = false;  // true: the map of slots must be read again
  // True: timer_ runs a long pause, which ends early when is_map_outdated_ becomes true.
  bool in_refresh_pause_ = false;
  std::size_t first_node_ = 0;  // which session's node is asked first for the map (nodes_to_ask())
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace weir::redis
