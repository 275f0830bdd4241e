// The main thread of a running weir. Program owns the admin listener and everything that the workers share,
// handles signals, and sweeps the key table periodically.
//
// - program.cpp starts and ends weir.
// - program_reload.cpp puts another configuration into use.
// - program_api_keys.cpp changes the keys file and the API keys in use.
// - program_upgrade.cpp hands over to a new process or takes over from an old one.
// - program_sources.cpp provides the admin listener's data.
// - program_servers.cpp shows and changes the state of the upstreams' servers.
// - program_secret.cpp reads the secret that all weir processes with one Redis share.
#pragma once

#include "server/adaptation.hpp"
#include "server/config_snapshots.hpp"
#include "server/config_watch.hpp"
#include "server/inspector.hpp"
#include "server/listeners.hpp"
#include "server/process/file_thread.hpp"
#include "server/process/keys_file_edit.hpp"
#include "server/process/snapshot_file.hpp"
#include "server/process/supervision.hpp"
#include "server/process/worker_thread.hpp"
#include "server/token_key_fetcher.hpp"

#include "weir/acme/manager.hpp"
#include "weir/admin/alerts.hpp"
#include "weir/admin/process.hpp"
#include "weir/admin/server.hpp"
#include "weir/config/cannot_start.hpp"
#include "weir/config/locations.hpp"
#include "weir/limit/foreign_permits.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/log/access_log.hpp"
#include "weir/log/log.hpp"
#include "weir/log/span_exporter.hpp"
#include "weir/net/clock.hpp"
#include "weir/net/clock_step.hpp"
#include "weir/proxy/permit_owners.hpp"
#include "weir/redis/shared_secret.hpp"
#include "weir/server/client_files.hpp"
#include "weir/server/reload.hpp"
#include "weir/server/signals.hpp"
#include "weir/upgrade/connection_transfer.hpp"
#include "weir/upgrade/passed_sockets.hpp"
#include "weir/upgrade/permit_changes.hpp"
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

namespace weir::server {

template <class T>
T need(base::Result<T> result) {
  if (!result) throw config::CannotStart(result.error().message);
  return std::move(*result);
}

class Program {
 public:
  // `servers`: the addresses of the upstreams' servers. The caller looks up the addresses, so that SIGTERM
  // still ends the process at once during a look-up. `file`: the configuration file, which a reload reads
  // again. `passed`: listening sockets from systemd. `takeover`: null if weir does not take over from an old
  // process; must outlive this object. Throws std::runtime_error, such as CannotStart, with the reason if
  // weir cannot start.
  Program(const config::Settings& settings, config::LookupResult servers, std::string file,
          upgrade::PassedSockets passed, upgrade::Takeover* takeover);
  int serve();

 private:
  void start_shared_secret();
  void take_secret(const base::SipKey& secret);
  [[nodiscard]] base::Result<ConfigSnapshots::Draft> make_config_snapshot(
      const config::Settings& settings, std::vector<upstream::ResolvedUpstream> upstreams);
  void start_workers(std::vector<upstream::ResolvedUpstream> upstreams);
  void start_admin();
  [[nodiscard]] std::vector<net::ListeningSocket> inherited(const base::Endpoint& listener);
  void reload(Reloading::Done done);
  [[nodiscard]] ReloadReport apply(FreshConfiguration fresh);
  void change_servers(const upstream::ResolvedUpstream& upstream);
  void activate(config::Settings settings, const ConfigSnapshots::Draft& draft,
                std::vector<Listeners::Wanted> listeners, std::vector<ClientFiles::TlsUse> files,
                ReloadReport& report);
  void change_api_key(const admin::ApiKeyRequest& request, admin::ApiKeyDone done);
  [[nodiscard]] admin::ApiKeyResponse end_change(const admin::ApiKeyRequest& request,
                                                 const KeysFileEdit& edit);
  void activate(const policy::ApiKeys& keys, const net::FileStamp& stamp);
  [[nodiscard]] base::Result<void> take_up(const std::vector<const ClientFiles::TlsUse*>& changed);
  void log_lines(log::LogLevel level, const std::vector<std::string>& lines);
  void upgrade(upgrade::Upgrade::Done done);
  void run_pending_reload(const upgrade::UpgradeReport& report);
  [[nodiscard]] upgrade::Upgrade::Callbacks callbacks();
  [[nodiscard]] std::vector<upgrade::ListenerSockets> listener_sockets() const;
  void hand_over(const upgrade::UpgradeReport& report, net::OwnedDescriptor channel);
  void take_over();
  [[nodiscard]] upgrade::HandoffReceiver::Callbacks old_process_callbacks();
  void note_lost_connection(const char* why);
  void change_foreign_permits(const std::vector<std::string>& lines);
  [[nodiscard]] std::uint64_t decided_apart() const;
  void on_stop_signal();
  void stop_at_once();
  void delay_drain();
  void begin_drain();
  void drain();
  void end_control(std::chrono::steady_clock::time_point latest);
  void make_room_for_counters();
  void clean_up();
  [[nodiscard]] std::size_t most_sessions();
  [[nodiscard]] admin::Sources sources();
  void add_questions(admin::Sources& sources);
  void add_redis(admin::Sources& sources);
  [[nodiscard]] Inspector::Moment moment();
  [[nodiscard]] double system_load();
  [[nodiscard]] limit::UpstreamAnswers answers_so_far(std::size_t upstream) const;
  [[nodiscard]] std::optional<observe::TopOfRule> top_clients(limit::RuleIndex index) const;
  // The next four functions are defined in program_servers.cpp.
  [[nodiscard]] std::vector<admin::ServerFigures> servers() const;
  [[nodiscard]] base::Result<admin::ServerFigures> change_server(const admin::ServerChange& change);
  [[nodiscard]] std::vector<std::string> changed_servers() const;
  [[nodiscard]] bool change_server_again(std::string_view line);
  [[nodiscard]] std::vector<admin::ResolveFigures> resolves() const;
  [[nodiscard]] std::vector<std::pair<const char*, double>> load();
  [[nodiscard]] admin::Readiness readiness() const;
  [[nodiscard]] admin::Readiness token_readiness() const;
  [[nodiscard]] std::string why_not_redis(const WorkerThread& worker) const;
  void on_signal(int signal);
  void sweep_later();
  void watch_configuration();
  void note_token_keys();
  void check_clocks();
  [[nodiscard]] limit::Snapshot snapshot_header() const;
  void start_supervision();
  [[nodiscard]] acme::Manager::Callbacks acme_callbacks();

  config::Settings settings_;  // the configuration in use
  // The configuration at the start, from which weir reads the settings that cannot change while it runs.
  const config::Settings initial_settings_;
  net::asio::io_context control_{1};
  // Must be created before any other thread. log_ starts the first of these threads.
  Signals signals_{control_.get_executor(), {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}};
  log::Log log_;
  log::AccessLog access_log_;
  std::unique_ptr<log::SpanExporter> spans_;  // null if [tracing] is absent
  upgrade::PassedSockets passed_;
  upgrade::Takeover* const takeover_;
  SnapshotFile snapshot_;
  // The time that weir adds to times of an earlier process, to convert them to this process's clock.
  const base::Duration shift_;
  net::Clock clock_;
  net::ClockStep clock_step_;
  const base::TimePoint started_ = clock_.now();
  policy::NamingKeys names_;
  bool names_agreed_;  // true if names_.shared comes from the configuration, the old process or Redis
  limit::KeyTable table_;
  ConfigSnapshots config_snapshots_;
  limit::ForeignPermits foreign_permits_{table_};  // permits that the old process holds
  upgrade::PermitChanges permit_changes_{control_.get_executor(), table_};
  const unsigned worker_count_;
  proxy::SharedQueue queue_;
  proxy::InFlight in_flight_;
  proxy::ConnectionsPerIp connections_per_ip_;
  proxy::BodyMemory body_memory_;
  upstream::Prober prober_;
  upstream::Resolver resolver_;
  redis::LastRefunds redis_refunds_;
  std::optional<redis::SharedGrants> shared_grants_;
  std::optional<redis::SharedSecret> shared_secret_;  // absent if key_secret is set or no rule uses Redis
  // Pending checks of certificate authorities. Shared, because TLS contexts may outlive this object.
  const std::shared_ptr<net::Challenges> challenges_ = std::make_shared<net::Challenges>();
  proxy::PermitOwners permit_owners_;
  proxy::Shared shared_;
  net::Timer stop_timer_{control_.get_executor()};  // ends drain_delay, then the drain
  net::Timer sweep_timer_{control_.get_executor()};
  ConfigWatch config_watch_;
  net::Timer watch_timer_{control_.get_executor()};  // runs while settings_.server.watch is set
  // Set once this process has handed over to a new process.
  std::optional<upgrade::HandoffSender> handoff_sender_;
  std::vector<std::unique_ptr<WorkerThread>> workers_;
  Adaptation adaptation_{control_.get_executor(), config_snapshots_.factors(),
                         [this](std::size_t upstream) { return answers_so_far(upstream); }, log_};
  std::optional<Listeners> listeners_;
  ClientFiles client_files_{control_.get_executor(), log_,
                            [this](const auto& changed) { return take_up(changed); }};
  TokenKeyFetcher token_keys_{log_, [this] { note_token_keys(); }};
  Inspector inspector_{
      control_.get_executor(), clock_, table_, queue_, workers_, log_, access_log_, moment()};
  admin::ProcessReader process_;
  std::unique_ptr<admin::Alerts> alerts_;
  std::unique_ptr<admin::Server> admin_;
  Supervision supervision_{control_.get_executor(), notify_environment(), log_};
  FileThread file_thread_{control_};  // reads the configuration, and changes the keys file
  Reloading reloading_;
  upgrade::Upgrade upgrade_;
  std::optional<upgrade::HandoffReceiver> handoff_receiver_;  // receives connections from the old process
  acme::Manager acme_{challenges_, acme_callbacks()};
  bool reload_pending_ = false;  // SIGHUP came during an upgrade, so weir must reload after the upgrade
  bool stopping_ = false;        // a stop signal came, or this process has handed over
  bool draining_ = false;        // the drain has begun, after drain_delay if there is one
  bool stop_requested_ = false;  // a stop signal came after this process had handed over
  std::uint64_t upgraded_ = takeover_ != nullptr ? takeover_->carried_state().upgraded + 1 : 0;
  std::uint64_t connections_lost_ = 0;  // connections of the old process that this process has dropped
  std::uint64_t failed_before_ = takeover_ != nullptr ? takeover_->carried_state().failed : 0;
};

}  // namespace weir::server
