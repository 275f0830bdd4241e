#include "server/program.hpp"

#include "weir/upgrade/handed_alerts.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace weir::server {

// Starts an upgrade. If the upgrade is refused, calls `done` at once with the reason.
void Program::upgrade(upgrade::Upgrade::Done done) {
  const auto refuse = [&](const char* why) {
    log_.error(std::string("upgrade: ") + why);
    upgrade::UpgradeReport report;
    report.fault = why;
    if (done) done(report);
  };
  if (stopping_) return refuse("weir is stopping");
  if (reloading_.is_under_way()) return refuse("a reload is in progress; try again");
  if (file_thread_.size() != 0) return refuse("a change of API keys is in progress; try again");
  if (!readiness().ready) return refuse("weir is not ready yet; try again");
  upgrade_.begin({.start = settings_.server.upgrade_timeout, .pause = settings_.server.upgrade_pause},
                 [this, done = std::move(done)](const upgrade::UpgradeReport& report) {
                   if (done) done(report);
                   if (std::exchange(reload_pending_, false)) run_pending_reload(report);
                 });
}

// Performs the reload that SIGHUP requested during the upgrade. After a successful upgrade, only the new
// process reads the file.
void Program::run_pending_reload(const upgrade::UpgradeReport& report) {
  if (!report.ok()) return reload({});
  log_.info("reload: process " + std::to_string(report.successor) + " reloads the configuration");
  ::kill(report.successor, SIGHUP);
}

upgrade::Upgrade::Callbacks Program::callbacks() {
  return {.carried_state =
              [this] {
                return upgrade::CarriedState{.clock = clock_.offset(),
                                             .table = names_.table,
                                             .shared = names_agreed_ ? names_.shared : base::SipKey{},
                                             .upgraded = upgraded_,
                                             .failed = failed_before_ + upgrade_.failed()};
              },
          .listener_sockets = [this] { return listener_sockets(); },
          .pause =
              [this](const std::function<void()>& done) {
                const auto left = std::make_shared<std::atomic<std::size_t>>(workers_.size());
                for (const auto& worker : workers_)
                  worker->pause([left, done] {
                    if (--*left == 0) done();
                  });
              },
          .resume =
              [this] {
                permit_changes_.stop();
                for (const auto& worker : workers_) worker->resume();
              },
          .state =
              [this] {
                const auto rules = config_snapshots_.saved_rules();
                auto state = upgrade::write_state(table_, snapshot_header(), rules);
                if (state) state->held = permit_changes_.begin(rules);
                if (state)
                  for (auto& line : changed_servers()) state->held.push_back(std::move(line));
                return state;
              },
          .announce = [this](pid_t successor) { supervision_.hand_over(successor); },
          .alerts =
              [this](const std::vector<std::string>& alert_ids) {
                return upgrade::lines_of(alerts_->retire(alert_ids));
              },
          .hand_over = [this](const upgrade::UpgradeReport& report,
                              net::OwnedDescriptor channel) { hand_over(report, std::move(channel)); }};
}

std::vector<upgrade::ListenerSockets> Program::listener_sockets() const {
  std::vector<upgrade::ListenerSockets> all;
  for (auto& [address, sockets] : listeners_->sockets())
    all.push_back({"listener", std::move(address), std::move(sockets)});
  if (admin_) all.push_back({"admin", initial_settings_.admin.address->to_string(), admin_->sockets()});
  return all;
}

// Makes this process finish its open requests and then end. From now on, only the new process writes the
// snapshot file.
void Program::hand_over(const upgrade::UpgradeReport& report, net::OwnedDescriptor channel) {
  handoff_sender_.emplace(std::move(channel));
  log_.write_always(
      log::LogLevel::Info,
      "upgrade: process " + std::to_string(report.successor) + " has taken over, with the state of " +
          upgrade::kept_in_words(report.keys, report.changed, report.left_out) + "; requests waited " +
          std::to_string(std::chrono::ceil<std::chrono::milliseconds>(report.paused).count()) + " ms");
  if (admin_) admin_->retire();
  if (shared_secret_) shared_secret_->stop();
  acme_.configure(std::nullopt, {});
  listeners_->close();
  for (const auto& worker : workers_) worker->retire(*handoff_sender_);
  permit_changes_.follow(
      [this](const std::vector<std::string>& lines) { handoff_sender_->report_permits(lines); });
  drain();
}

// Applies changes that the old process reports: the number of permits that it holds, and what operators
// change about servers in that process. Ignores lines about rules and servers that no longer exist.
void Program::change_foreign_permits(const std::vector<std::string>& lines) {
  for (const auto& text : lines) {
    if (change_server_again(text)) continue;
    const auto line = upgrade::permit_change_of(text);
    const auto charge = line ? config_snapshots_.charge_for(line->rule, line->key) : std::nullopt;
    if (charge) foreign_permits_.change(*charge, line->units, clock_.now());
  }
}

// Returns the number of requests that this process decided after it had handed over. The new process does not
// know their charges.
std::uint64_t Program::decided_apart() const {
  std::uint64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->decided_apart();
  return sum;
}

// Takes over from the old process. The workers already run and can connect to Redis, but they do not accept
// connections yet.
void Program::take_over() {
  constexpr std::chrono::milliseconds kPollInterval{2};
  takeover_->close_rest();
  const auto waits = [](const auto& worker) { return worker->waits_for_redis(); };
  while (std::any_of(workers_.begin(), workers_.end(), waits)) std::this_thread::sleep_for(kPollInterval);
  const auto state = takeover_->await_state();
  const auto restored = need(upgrade::read_state(
      state.file.get(), config_snapshots_.saved_rules(), {clock_.now(), shift_}, table_,
      [this](const limit::FormerRule& former) { return config_snapshots_.adopt(former); }));
  change_foreign_permits(state.held);
  const auto permits = foreign_permits_.units();
  takeover_->await_open_message(restored);
  for (const auto& worker : workers_) worker->open();
  auto handoff = takeover_->await_handoff_channel(alerts_->alert_ids());
  takeover_->remove_files_of_rest();
  auto alerts = upgrade::alerts_of(handoff.alerts);
  for (auto& alert : alerts) alert.since += shift_;
  alerts_->go_on(alerts);
  handoff_receiver_.emplace(control_.get_executor(), std::move(handoff.channel), old_process_callbacks());
  auto line = "upgrade: took over with the state of " +
              upgrade::kept_in_words(restored.keys, restored.changed, restored.left_out);
  if (permits != 0)
    line += "; " + std::to_string(permits) + " concurrency permits are still held by the old process";
  if (shift_.count() != 0)
    line += "; times shifted by " + std::to_string(std::chrono::round<std::chrono::seconds>(shift_).count()) +
            " s, because the system clock was set";
  log_.write_always(log::LogLevel::Info, line);
}

void Program::note_lost_connection(const char* why) {
  ++connections_lost_;
  log_.warning(std::string("upgrade: a connection was dropped: ") + why);
}

// Returns the callbacks that handle messages from the old process until it ends.
upgrade::HandoffReceiver::Callbacks Program::old_process_callbacks() {
  return {.take =
              [this](upgrade::ReceivedConnection arrived) {
                if (!handoff_sender_) return listeners_->adopt(std::move(arrived));
                // If this process has itself handed over in the meantime, it passes the connection on.
                if (handoff_sender_->take(arrived.socket.get(), arrived.listener, arrived.connection_info,
                                          arrived.unread) != proxy::HandoffResult::Yes)
                  note_lost_connection("the new process did not accept it");
              },
          .lost = [this] { note_lost_connection("no file descriptors are left"); },
          .change_foreign_permits =
              [this](const std::vector<std::string>& lines) { change_foreign_permits(lines); },
          .ended =
              [this] {
                foreign_permits_.release_all(clock_.now());
                clean_up();
              }};
}

}  // namespace weir::server
