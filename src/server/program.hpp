// The main thread of a running weir: everything that workers share, the admin page, signals, and the periodic
// sweep of the table.
//
// - program.cpp starts and ends it.
// - program_reload.cpp puts another configuration into use.
// - program_upgrade.cpp hands over to another process or takes over from one.
// - program_sources.cpp provides the admin listener's data.
// - program_secret.cpp learns the secret that weirs share.
#pragma once

#include "server/editions.hpp"
#include "server/inspector.hpp"
#include "server/listeners.hpp"
#include "server/process/snapshot_file.hpp"
#include "server/process/supervision.hpp"
#include "server/process/worker_thread.hpp"

#include "weir/admin/alerts.hpp"
#include "weir/admin/process.hpp"
#include "weir/admin/server.hpp"
#include "weir/config/cannot_start.hpp"
#include "weir/config/places.hpp"
#include "weir/limit/held_elsewhere.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/log/access_log.hpp"
#include "weir/log/log.hpp"
#include "weir/net/clock.hpp"
#include "weir/net/clock_step.hpp"
#include "weir/redis/shared_secret.hpp"
#include "weir/server/client_files.hpp"
#include "weir/server/reload.hpp"
#include "weir/server/signals.hpp"
#include "weir/upgrade/held_news.hpp"
#include "weir/upgrade/passage.hpp"
#include "weir/upgrade/passed_sockets.hpp"
#include "weir/upgrade/takeover.hpp"
#include "weir/upgrade/upgrade.hpp"
#include "weir/upstream/prober.hpp"
#include "weir/upstream/resolver.hpp"

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::app {

template <class T>
T need(base::Result<T> result) {
  if (!result) throw CannotStart(result.error().message);
  return std::move(*result);
}

class Program {
 public:
  // `servers`: looked up before, while SIGTERM still ends the process at once. `file`: the settings' file,
  // which a reload reads again. `passed`: sockets from systemd. `takeover`: the process that this one
  // replaces, or null. It outlives this object.
  Program(const Settings& settings, LookedUp servers, std::string file, PassedSockets passed,
          Takeover* takeover);
  int serve();

 private:
  void start_shared_secret();
  void take_secret(const base::SipKey& secret);
  [[nodiscard]] base::Result<Editions::Draft> make_edition(
      const Settings& settings, std::vector<std::vector<upstream::Server>> servers);
  void start_workers(std::vector<std::vector<upstream::Server>> servers);
  void start_admin();
  [[nodiscard]] std::vector<net::ListeningSocket> inherited(const base::Endpoint& listener);
  void reload(Reloading::Done done);
  [[nodiscard]] ReloadReport apply(FreshConfiguration fresh);
  void put_in_force(Settings settings, const Editions::Draft& draft, std::vector<Listeners::Wanted> listeners,
                    std::vector<ClientFiles::Use> files, ReloadReport& report);
  [[nodiscard]] base::Result<void> take_up(const std::vector<const ClientFiles::Use*>& changed);
  void tell(LogLevel level, const std::vector<std::string>& lines);
  void upgrade(Upgrade::Done done);
  void pay_reload(const UpgradeReport& report);
  [[nodiscard]] Upgrade::House house();
  [[nodiscard]] std::vector<Bequest> bequests() const;
  void hand_over(const UpgradeReport& report, net::OwnedDescriptor channel);
  void take_over();
  [[nodiscard]] Arrivals::House predecessor();
  void lose_connection(const char* why);
  void change_held(const std::vector<std::string>& lines);
  [[nodiscard]] std::uint64_t decided_apart() const;
  void drain();
  void end_control(std::chrono::steady_clock::time_point latest);
  void make_room_for_counters();
  void tidy();
  [[nodiscard]] std::size_t most_sessions();
  [[nodiscard]] admin::Sources sources();
  void add_questions(admin::Sources& sources);
  void add_redis(admin::Sources& sources);
  [[nodiscard]] Inspector::Moment moment();
  [[nodiscard]] double system_load();
  [[nodiscard]] std::optional<observe::TopOfRule> top_clients(limit::RuleIndex label) const;
  [[nodiscard]] std::vector<admin::ServerFigures> servers() const;
  [[nodiscard]] std::vector<admin::ResolveFigures> resolves() const;
  [[nodiscard]] std::vector<std::pair<const char*, double>> load();
  [[nodiscard]] admin::Readiness readiness() const;
  [[nodiscard]] std::string why_not_redis(const WorkerThread& worker) const;
  void on_signal(int signal);
  void sweep_later();
  void look_at_clocks();
  [[nodiscard]] limit::Snapshot here_and_now() const;
  void start_supervision();

  Settings settings_;          // in use
  const Settings begun_with_;  // at the start; keys that cannot change refer to it
  net::asio::io_context control_{1};
  // Must be created before the first thread, which is the log's.
  Signals signals_{control_.get_executor(), {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}};
  Log log_;
  AccessLog access_log_;
  PassedSockets passed_;
  Takeover* const takeover_;
  SnapshotFile snapshot_;
  // Moves times of an earlier process to this process's clock.
  const base::Duration shift_;
  net::Clock clock_;
  net::ClockStep clock_step_;
  const base::TimePoint started_ = clock_.now();
  policy::NamingKeys names_;
  bool names_agreed_;  // names_.shared is from the configuration, the process before, or Redis
  limit::KeyTable table_;
  Editions editions_;
  limit::HeldElsewhere held_elsewhere_{table_};  // by the process before this one
  HeldNews held_news_{control_.get_executor(), table_};
  const unsigned worker_count_;
  proxy::SharedQueue queue_;
  proxy::InFlight in_flight_;
  proxy::Crowd crowd_;
  proxy::BodyMemory body_memory_;
  upstream::Prober prober_;
  upstream::Resolver resolver_;
  redis::LastRefunds redis_refunds_;
  std::optional<redis::UnitLeases> redis_units_;
  std::optional<redis::SharedSecret> shared_secret_;  // absent if key_secret is set or no rule needs Redis
  proxy::Shared shared_;
  net::Timer drain_deadline_{control_.get_executor()};
  net::Timer sweep_timer_{control_.get_executor()};
  std::optional<Departures> departures_;  // set after another process has taken over
  std::vector<std::unique_ptr<WorkerThread>> workers_;
  std::optional<Listeners> listeners_;
  ClientFiles client_files_{control_.get_executor(), log_,
                            [this](const auto& changed) { return take_up(changed); }};
  Inspector inspector_{
      control_.get_executor(), clock_, table_, queue_, workers_, log_, access_log_, moment()};
  admin::ProcessReader process_;
  std::unique_ptr<admin::Alerts> alerts_;
  std::unique_ptr<admin::Server> admin_;
  Supervision supervision_{control_.get_executor(), notify_environment(), log_};
  Reloading reloading_;
  Upgrade upgrade_;
  std::optional<Arrivals> arrivals_;  // connections of the process before this one
  bool reload_owed_ = false;          // a signal during an upgrade asked for a reload
  bool draining_ = false;
  bool told_to_end_ = false;  // a signal came while this process drains after a takeover
  std::uint64_t upgraded_ = takeover_ != nullptr ? takeover_->legacy().upgraded + 1 : 0;
  std::uint64_t connections_lost_ = 0;  // lost on the way from the process before this one
  std::uint64_t failed_before_ = takeover_ != nullptr ? takeover_->legacy().failed : 0;
};

}  // namespace weir::app
