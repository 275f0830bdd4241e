#include "server/program.hpp"

#include "weir/base/version.hpp"
#include "weir/config/settings_needs.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::server {

admin::Sources Program::sources() {
  admin::Sources sources;
  sources.version = WEIR_VERSION;
  sources.commit = base::commit();
  sources.started = started_;
  sources.now = [this] { return clock_.now(); };
  for (const auto& worker : workers_) sources.counters.push_back(&worker->counters());
  sources.routes = config_snapshots_.route_names();
  for (const auto& rule : config_snapshots_.current().config.rules)
    sources.rules.push_back(admin::describe(rule));
  sources.upstreams = config_snapshots_.upstream_names();
  sources.servers = [this] { return servers(); };
  sources.change_server = [this](const admin::ServerChange& change) { return change_server(change); };
  sources.resolves = [this] { return resolves(); };
  sources.token_keys = [this] { return token_keys_.figures(); };
  sources.key_table = [this] { return table_.stats(); };
  sources.limits = [this] { return std::pair(config_snapshots_.limits(), limit::Limiters::kMost); };
  sources.process = [this] { return process_.read(); };
  sources.log_lines_lost = [this] { return access_log_.lost(); };
  if (spans_)
    sources.spans = [this] {
      const auto figures = spans_->figures();
      return admin::SpanFigures{.exported = figures.exported,
                                .dropped_full = figures.dropped_full,
                                .dropped_rejected = figures.dropped_rejected,
                                .failed_posts = figures.failed_posts};
    };
  sources.load = [this] { return load(); };
  sources.factor = [this](limit::RuleIndex index) { return config_snapshots_.factors().of(index); };
  sources.readiness = [this] { return readiness(); };
  sources.certificates = [this] {
    auto figures = listeners_->certificates();
    client_files_.add_to(figures);
    if (settings_.acme) {
      const auto [ok, failed, placeholders] = acme_.figures();
      figures.acme = {.ok = ok, .failed = failed, .placeholders = placeholders};
    }
    return figures;
  };
  if (!settings_.alerts.empty()) sources.alerts = [this] { return alerts_->figures(); };
  sources.alert_faults = [this] { return alerts_->faults(); };
  add_questions(sources);
  if (config::needs_redis(initial_settings_)) add_redis(sources);
  return sources;
}

// Adds the functions of the admin listener that take time to answer: reload, upgrade, explain and keys.
void Program::add_questions(admin::Sources& sources) {
  sources.reload = [this](const std::string& peer, admin::ReloadDone done) {
    log_.audit("admin: " + peer + " requests a reload");
    reload([done = std::move(done)](const ReloadReport& report) {
      done({report.mistakes, report.changes, report.warnings});
    });
  };
  sources.longest_reload = kLongestReload;
  sources.reloads = [this] {
    return admin::ReloadFigures{.ok = reloading_.succeeded(),
                                .failed = reloading_.failed(),
                                .last_ok = reloading_.last_succeeded(),
                                .last = std::chrono::floor<std::chrono::seconds>(reloading_.since())};
  };
  sources.upgrades = [this] {
    return admin::UpgradeFigures{
        .ok = upgraded_, .failed = failed_before_ + upgrade_.failed(), .lost = connections_lost_};
  };
  sources.longest_upgrade = config::longest_upgrade(settings_);
  sources.upgrade = [this](const std::string& peer, admin::UpgradeDone done) {
    log_.audit("admin: " + peer + " requests an upgrade");
    upgrade([done = std::move(done)](const upgrade::UpgradeReport& report) {
      done({.fault = report.fault,
            .process = report.successor,
            .keys = report.keys,
            .changed = report.changed,
            .left_out = report.left_out,
            .paused = report.paused});
    });
  };
  sources.explain = [this](policy::ExplainRequest explain_request) {
    return inspector_.explain(std::move(explain_request));
  };
  sources.keys = [this](admin::KeyRequest question) { return inspector_.keys(std::move(question)); };
  sources.api_keys = [this] { return settings_.client.keys ? &*settings_.client.keys : nullptr; };
  sources.longest_api_key_change = kLongestApiKeyChange;
  sources.change_api_key = [this](const admin::ApiKeyRequest& request, admin::ApiKeyDone done) {
    change_api_key(request, std::move(done));
  };
  if (initial_settings_.admin.top != 0)
    sources.top = [this](limit::RuleIndex index) { return std::pair(top_clients(index), clock_.now()); };
}

// Returns the clients of a rule, summed over all workers; nullopt if no worker has counted a client.
std::optional<observe::TopOfRule> Program::top_clients(limit::RuleIndex index) const {
  std::optional<observe::TopOfRule> all;
  if (initial_settings_.admin.top == 0) return all;
  const auto now = clock_.now();
  for (const auto& worker : workers_) worker->counters().top->read(index, now, all);
  return all;
}

void Program::add_redis(admin::Sources& sources) {
  if (shared_grants_)
    sources.leases = [this] {
      const auto stats = shared_grants_->stats();
      return admin::LeaseFigures{.taken = stats.taken,
                                 .spent = stats.spent,
                                 .put_back = stats.put_back,
                                 .returned = stats.returned,
                                 .lost = stats.lost,
                                 .held = stats.held(),
                                 .crowded = stats.rejected_keys};
    };
  sources.redis = [this] {
    std::vector<admin::RedisFigures> figures;
    for (const auto& worker : workers_) {
      const auto& stats = worker->redis()->stats();
      figures.push_back({.up = names_agreed_ && worker->redis()->state() == redis::StoreState::Up,
                         .calls = stats.calls,
                         .failures = stats.failures,
                         .timeouts = stats.timeouts,
                         .reconnects = stats.connects > 0 ? stats.connects - 1 : 0,
                         .amendments = stats.refunds,
                         .amendments_lost = stats.refunds_lost,
                         .gaps_lost = stats.gaps_lost});
    }
    return figures;
  };
}

std::vector<admin::ResolveFigures> Program::resolves() const {
  std::vector<admin::ResolveFigures> figures;
  for (const auto& each : resolver_.figures())
    figures.push_back(
        {.upstream = each.upstream, .same = each.same, .changed = each.changed, .failed = each.failed});
  return figures;
}

// Returns the name and value of each kind of load. Workers measure some kinds, and only if a rule uses the
// load. The other kinds are read at the time of the call.
std::vector<std::pair<const char*, double>> Program::load() {
  using proxy::LoadKind;
  std::vector<std::pair<const char*, double>> load;
  const auto name = [](LoadKind kind) { return proxy::kLoadKindNames[static_cast<std::size_t>(kind)]; };
  const auto busiest = [&](LoadKind kind) {
    double most = 0;
    for (const auto& worker : workers_) most = std::max(most, worker->load().part(kind));
    return most;
  };
  if (config_snapshots_.current().config.elastic)
    for (const auto kind : {LoadKind::Lag, LoadKind::Cpu}) load.emplace_back(name(kind), busiest(kind));
  load.emplace_back(name(LoadKind::Queue), queue_.fullness());
  load.emplace_back(name(LoadKind::InFlight), std::min(1.0, in_flight_.fullness()));
  return load;
}

Inspector::Moment Program::moment() {
  return {[this] { return config_snapshots_.configuration(); }, [this] { return system_load(); },
          [this](limit::RuleIndex index) { return top_clients(index); }};
}

// Returns the sum of an upstream's answers so far, over all workers. `upstream`: the index of its counters.
limit::UpstreamAnswers Program::answers_so_far(std::size_t upstream) const {
  limit::UpstreamAnswers sum;
  for (const auto& worker : workers_) {
    const auto& tallies = worker->counters().upstream(upstream);
    sum.all += tallies.attempts.value();
    sum.failed += tallies.attempts_failed.value();
    const auto times = tallies.seconds.read();
    sum.measured += times.count;
    sum.time += base::Duration(static_cast<base::Duration::rep>(times.sum_us));
  }
  return sum;
}

// Returns the highest value among all kinds of load.
double Program::system_load() {
  double most = 0;
  for (const auto& [kind, part] : load()) most = std::max(most, part);
  return most;
}

admin::Readiness Program::readiness() const {
  if (stopping_ && !handoff_sender_)
    return {.ready = false, .detail = draining_ ? "draining" : "about to drain"};
  const auto waiting = std::find_if(workers_.begin(), workers_.end(),
                                    [](const auto& worker) { return worker->waits_for_redis(); });
  if (waiting != workers_.end())
    return {.ready = false,
            .detail = "waiting for redis before accepting requests",
            .cause = why_not_redis(**waiting)};
  const auto down = std::find_if(workers_.begin(), workers_.end(), [this](const auto& worker) {
    return worker->redis() != nullptr &&
           (!names_agreed_ || worker->redis()->state() != redis::StoreState::Up);
  });
  if (down == workers_.end()) return token_readiness();
  return {.ready = true,
          .detail = "redis does not answer or refuses; its rules follow on_store_failure",
          .cause = why_not_redis(**down)};
}

// Always returns ready, because missing keys of tokens fail only the requests that need them. The detail
// names a URL whose keys weir has never fetched, if there is one.
admin::Readiness Program::token_readiness() const {
  const auto figures = token_keys_.figures();
  const auto missing =
      std::find_if(figures.begin(), figures.end(), [](const auto& each) { return !each.age; });
  if (missing == figures.end()) return {.ready = true, .detail = ""};
  return {.ready = true,
          .detail = "keys of tokens are not fetched yet; requests that need them get 503",
          .cause = missing->url + (missing->fault.empty() ? "" : ": " + missing->fault)};
}

// Returns why a worker cannot use Redis; empty if the reason is not known yet.
std::string Program::why_not_redis(const WorkerThread& worker) const {
  auto why = worker.redis()->why_down();
  if (why.empty() && shared_secret_) why = shared_secret_->why();
  return why;
}

}  // namespace weir::server
