#include "server/program.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::server {

// Reloads the configuration, unless an upgrade is under way. During an upgrade, the new process may have read
// the file before the file changed. So if `done` is set, the caller gets an error and must request the reload
// again after the upgrade. After a SIGHUP, weir reloads by itself after the upgrade (see
// run_pending_reload()).
void Program::reload(Reloading::Done done) {
  if (upgrade_.is_under_way()) {
    reload_pending_ = reload_pending_ || !done;
    ReloadReport report;
    report.mistakes = {"an upgrade is in progress; try again"};
    log_.warning(done ? "reload: " + report.mistakes.front()
                      : "reload: an upgrade is in progress; weir reloads after it");
    if (done) done(report);
    return;
  }
  supervision_.reloading();
  reloading_.ask([this, done = std::move(done)](const ReloadReport& report) {
    if (!stopping_)
      supervision_.ready(report.ok() ? "serving"
                                     : "serving with the previous configuration; the reload failed: " +
                                           report.mistakes.front());
    if (done) done(report);
  });
}

// Looks at the files of the configuration once a second if `watch` is set, and reloads after a change. After
// a reload that failed, weir waits for the next change. Does not look while weir itself changes the keys
// file.
void Program::watch_configuration() {
  constexpr std::chrono::seconds kEvery{1};
  watch_timer_.cancel();
  if (!settings_.server.watch) return;
  watch_timer_.expires_after(kEvery);
  watch_timer_.async_wait([this](const net::ErrorCode& error) {
    if (error || stopping_) return;
    if (file_thread_.size() == 0 && config_watch_.has_changed()) {
      log_.info("watch: the configuration's files have changed: reloading the configuration");
      reload({});
    }
    watch_configuration();
  });
}

// Logs at most kMost lines, because the log accepts only a hundred lines a second, and other messages need
// room, too.
void Program::log_lines(log::LogLevel level, const std::vector<std::string>& lines) {
  constexpr std::size_t kMost = 30;
  for (std::size_t i = 0; i < std::min(kMost, lines.size()); ++i) log_.write(level, "reload: " + lines[i]);
  if (lines.size() > kMost)
    log_.write(level, "reload: " + std::to_string(lines.size() - kMost) +
                          " more lines; weir check and POST /api/reload show them");
}

ReloadReport Program::apply(FreshConfiguration fresh) {
  ReloadReport report;
  config_watch_.add(fresh.files);
  report.mistakes = std::move(fresh.mistakes);
  const auto refuse = [&](std::string why) {
    report.mistakes.push_back(std::move(why));
    log_lines(log::LogLevel::Error, report.mistakes);
    log_.write_always(log::LogLevel::Error, "reload: failed; the running configuration is unchanged");
    return report;
  };
  if (stopping_) return refuse("weir is stopping");
  if (fresh.settings)
    report.mistakes = find_unchangeable(initial_settings_, *fresh.settings, reloading_.file());
  if (!report.mistakes.empty()) {
    auto last = std::move(report.mistakes.back());
    report.mistakes.pop_back();
    return refuse(std::move(last));
  }
  if (auto fault = admin::Alerts::fault_of(fresh.settings->alerts)) return refuse(std::move(*fault));
  auto listeners = listeners_->prepare(*fresh.settings);
  if (!listeners) return refuse(listeners.error().message);
  clean_up();
  for (const auto& line : fresh.unknown) log_.warning("reload: " + line);
  token_keys_.share_keys(fresh.settings->client);
  auto files = ClientFiles::uses_in(*fresh.settings);
  auto draft = make_config_snapshot(*fresh.settings, std::move(fresh.upstreams));
  if (!draft) return refuse(draft.error().message);
  report.changes = std::move(draft->changes);
  std::move(fresh.differences.begin(), fresh.differences.end(), std::back_inserter(report.changes));
  activate(std::move(*fresh.settings), *draft, std::move(*listeners), std::move(files), report);
  return report;
}

// Puts a checked configuration into use. Fails only if memory runs out.
void Program::activate(config::Settings settings, const ConfigSnapshots::Draft& draft,
                       std::vector<Listeners::Wanted> listeners, std::vector<ClientFiles::TlsUse> files,
                       ReloadReport& report) {
  settings_ = std::move(settings);
  config_watch_.watch(settings_.files);
  watch_configuration();
  make_room_for_counters();
  const auto config_snapshot = config_snapshots_.activate(draft);
  in_flight_.set_most(settings_.server.max_in_flight);
  connections_per_ip_.set_most(settings_.server.max_connections_per_ip);
  body_memory_.set_most(settings_.server.max_body_memory);
  log_.set_level(settings_.log.level);
  adaptation_.watch(config_snapshot->config);
  for (const auto& worker : workers_) worker->begin(config_snapshot);
  for (auto& change : listeners_->activate(std::move(listeners), most_sessions()))
    report.changes.push_back(std::move(change));
  acme_.configure(settings_.acme, config::acme_certificates(settings_));
  listeners_->reread_certificates();
  listeners_->reread_certificates_every(settings_.server.certificate_check);
  prober_.watch(config_snapshot->server_groups);
  resolver_.watch(config_snapshot->server_groups, settings_.server.nameservers);
  token_keys_.watch(settings_.client);
  if (admin_) admin_->renew(sources());
  alerts_->change(settings_.alerts, sources());
  table_.migrate_cells(clock_.now());
  for (const auto& warning : settings_.warnings) {
    log_.warning(warning.where + ": " + warning.what);
    report.warnings.push_back(warning.where + ": warning: " + warning.what);
  }
  log_lines(log::LogLevel::Info, report.changes);
  client_files_.watch(std::move(files));
  for (auto& line : client_files_.reread()) report.changes.push_back(std::move(line));
  client_files_.check_every(settings_.server.certificate_check);
  log_.write_always(log::LogLevel::Info, "reload: the configuration was reloaded");
}

// Uses changed TLS files. Present requests and tunnels continue with the old files. Redis connections are not
// updated here, because they check their files themselves.
base::Result<void> Program::take_up(const std::vector<const ClientFiles::TlsUse*>& changed) {
  if (draining_) return {};
  std::vector<std::string> upstreams;
  for (const auto* use : changed) {
    if (use->kind == ClientFiles::Kind::Upstream) upstreams.push_back(use->name);
    if (use->kind == ClientFiles::Kind::Webhooks) alerts_->read_authorities();
  }
  if (upstreams.empty()) return {};
  const auto draft = config_snapshots_.with_tls_read_again(upstreams);
  if (!draft) return draft.error();
  const auto config_snapshot = config_snapshots_.activate(*draft);
  for (const auto& worker : workers_) worker->begin(config_snapshot);
  prober_.watch(config_snapshot->server_groups);
  resolver_.watch(config_snapshot->server_groups, settings_.server.nameservers);
  return {};
}

// Wakes the requests that wait for keys of tokens. Called on the thread that has fetched the keys.
void Program::note_token_keys() {
  net::asio::post(control_, [this] {
    for (const auto& worker : workers_) worker->wake_token_key_waiters();
  });
}

// Uses other servers of an upstream, because the SRV records of its service have changed. Present requests
// and tunnels continue with the old servers.
void Program::change_servers(const upstream::ResolvedUpstream& upstream) {
  if (draining_) return;
  const auto draft = config_snapshots_.with_servers(upstream);
  if (!draft) return log_.warning("upstream \"" + upstream.settings.name + "\": " + draft.error().message);
  const auto config_snapshot = config_snapshots_.activate(*draft);
  for (const auto& worker : workers_) worker->begin(config_snapshot);
  prober_.watch(config_snapshot->server_groups);
  resolver_.watch(config_snapshot->server_groups, settings_.server.nameservers);
}

void Program::make_room_for_counters() {
  for (const auto& worker : workers_) worker->counters().make_room(config_snapshots_.shape());
}

// Frees configurations, counters and keys that no request needs any more.
void Program::clean_up() {
  // A rejected draft may have taken indexes that have no counters yet. clean_up() below needs the counters of
  // each index that it frees.
  make_room_for_counters();
  std::vector<observe::Counters*> counters;
  for (const auto& worker : workers_) counters.push_back(&worker->counters());
  config_snapshots_.clean_up(counters, foreign_permits_.rules());
}

}  // namespace weir::server
