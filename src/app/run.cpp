#include "weir/app/run.hpp"

#include "app/descriptors.hpp"
#include "app/editions.hpp"
#include "app/listeners.hpp"
#include "app/reload.hpp"
#include "app/settings_needs.hpp"
#include "app/signals.hpp"
#include "app/snapshot_file.hpp"
#include "app/supervision.hpp"
#include "app/worker_thread.hpp"

#include "weir/admin/server.hpp"
#include "weir/app/access_log.hpp"
#include "weir/app/log.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/net/clock.hpp"
#include "weir/policy/key_ring.hpp"
#include "weir/policy/saved_rule.hpp"
#include "weir/upstream/prober.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <sys/random.h>

namespace weir::app {

namespace {

// What stops weir before it has served anything, in words for the person who started it.
struct CannotStart : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
T need(base::Result<T> result) {
  if (!result) throw CannotStart(result.error().message);
  return std::move(*result);
}

base::SipKey random_key() {
  base::SipKey key;
  if (::getrandom(&key, sizeof key, 0) != sizeof key) throw CannotStart("the system gives no random numbers");
  return key;
}

// Every weir with the same key_secret makes the same names.
base::SipKey shared_key(const std::string& secret) {
  if (secret.empty()) return random_key();
  const auto digest = policy::KeyRing::digest(secret);
  base::SipKey key;
  std::memcpy(&key, digest.data(), sizeof key);
  return key;
}

policy::NamingKeys naming_keys(const Settings& settings) {
  return {.table = random_key(),
          .shared = shared_key(settings.state.key_secret),
          .places = settings.state.redis && settings.state.redis->topology == redis::Topology::Cluster};
}

std::vector<std::vector<upstream::Server>> look_up_servers(const Settings& settings) {
  std::vector<std::vector<upstream::Server>> servers;
  for (const auto& upstream : settings.upstreams)
    servers.push_back(need(upstream::resolve_servers(upstream)));
  return servers;
}

unsigned count_workers(const proxy::ServerSettings& server) {
  return server.workers != 0 ? server.workers : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

namespace {

// The main thread's part: everything that workers share, the admin page, signals, and the slow sweep of the
// table.
class Program {
 public:
  // `servers` were looked up before: while the system's default of SIGTERM still holds. `file`: of the
  // settings, to be read anew.
  Program(const Settings& settings, std::vector<std::vector<upstream::Server>> servers, std::string file);
  int serve();

 private:
  void start_workers(std::vector<std::vector<upstream::Server>> servers);
  void start_admin();
  void reload(Reloading::Done done);
  [[nodiscard]] ReloadReport apply(FreshConfiguration fresh);
  void put_in_force(Settings settings, Editions::Draft draft, std::vector<Listeners::Wanted> listeners,
                    ReloadReport& report);
  void make_room_for_counters();
  void tidy();
  [[nodiscard]] std::size_t most_sessions();
  [[nodiscard]] admin::Sources sources();
  [[nodiscard]] std::vector<admin::ServerFigures> servers() const;
  [[nodiscard]] std::vector<std::pair<const char*, double>> load();
  [[nodiscard]] admin::Readiness readiness() const;
  void on_signal(int signal);
  void sweep_later();
  void start_supervision();

  Settings settings_;          // in force
  const Settings begun_with_;  // what cannot change refers to it
  net::asio::io_context control_{1};
  // Before the first thread, which is the log's.
  Signals signals_{control_.get_executor(), {SIGTERM, SIGINT, SIGHUP}};
  Log log_;
  AccessLog access_log_;
  SnapshotFile snapshot_;
  net::Clock clock_;
  policy::NamingKeys names_;
  limit::KeyTable table_;
  Editions editions_;
  const unsigned worker_count_;
  proxy::SharedQueue queue_;
  proxy::InFlight in_flight_;
  proxy::Crowd crowd_;
  upstream::Prober prober_;
  redis::LastRefunds redis_refunds_;
  std::optional<redis::UnitLeases> redis_units_;
  proxy::Shared shared_;
  net::Timer drain_deadline_{control_.get_executor()};
  net::Timer sweep_timer_{control_.get_executor()};
  std::vector<std::unique_ptr<WorkerThread>> workers_;
  std::optional<Listeners> listeners_;
  std::unique_ptr<admin::Server> admin_;
  Supervision supervision_{control_.get_executor(), notify_environment(), log_};
  Reloading reloading_;
  bool draining_ = false;
};

Program::Program(const Settings& settings, std::vector<std::vector<upstream::Server>> servers,
                 std::string file)
    : settings_(settings),
      begun_with_(settings),
      log_(settings.log.level),
      access_log_(settings.log.access),
      snapshot_(settings.state.snapshot, policy::saved_rules(settings.rules), net::Clock().now(), log_),
      clock_(snapshot_.found() ? snapshot_.found()->saved_at : base::TimePoint{}),
      names_(naming_keys(settings)),
      table_(settings.state.max_keys),
      editions_(control_, table_, clock_, log_, [this] { tidy(); }),
      worker_count_(count_workers(settings.server)),
      queue_(worker_count_),
      in_flight_(settings.server.max_in_flight),
      crowd_(settings.server.max_connections_per_ip),
      prober_(control_.get_executor(), clock_),
      shared_{clock_, table_, queue_, in_flight_, crowd_},
      reloading_(control_, std::move(file),
                 [this](FreshConfiguration fresh) { return apply(std::move(fresh)); }) {
  for (const auto& warning : settings.warnings) log_.warning(warning);
  // Names of a table that is filled from a snapshot are made under the key of the weir that wrote it.
  if (snapshot_.found()) names_.table = snapshot_.found()->names;
  start_workers(std::move(servers));
  start_admin();
}

void Program::start_workers(std::vector<std::vector<upstream::Server>> servers) {
  auto edition = editions_.put_in_force(need(editions_.make(settings_, std::move(servers), names_)));
  snapshot_.restore(table_, editions_.saved_rules(), clock_.now());
  if (takes_leases(settings_))
    redis_units_.emplace(settings_.state.redis->lease_keys, settings_.state.redis->lease_return);
  const WorkerParts parts{.shared = shared_,
                          .edition = std::move(edition),
                          .shape = editions_.shape(),
                          .redis = needs_redis(begun_with_) ? &*begun_with_.state.redis : nullptr,
                          .redis_refunds = redis_refunds_,
                          .redis_units = redis_units_ ? &*redis_units_ : nullptr,
                          .access_log = access_log_,
                          .log = log_};
  for (unsigned i = 0; i < worker_count_; ++i) workers_.push_back(std::make_unique<WorkerThread>(parts));
  prober_.watch(editions_.current().fleets);
  listeners_.emplace(control_.get_executor(), workers_, log_);
  listeners_->put_in_force(need(listeners_->prepare(settings_.listeners)), most_sessions());
}

std::size_t Program::most_sessions() {
  const auto descriptors = raise_descriptor_limit(settings_.server.max_connections);
  if (!descriptors.warning.empty()) log_.warning(descriptors.warning);
  return std::max<std::size_t>(1, descriptors.connections / worker_count_);
}

// What weir does by the configuration is done by what the file says now, or goes on as it is.
void Program::reload(Reloading::Done done) {
  supervision_.reloading();
  reloading_.ask([this, told = std::move(done)](const ReloadReport& report) {
    if (!draining_) supervision_.ready();
    if (told) told(report);
  });
}

ReloadReport Program::apply(FreshConfiguration fresh) {
  ReloadReport report;
  report.mistakes = std::move(fresh.mistakes);
  const auto refuse = [&](std::string why) {
    report.mistakes.push_back(std::move(why));
    for (const auto& mistake : report.mistakes) log_.error("reload: " + mistake);
    log_.error("reload: the configuration stays as it was");
    return report;
  };
  if (draining_) return refuse("weir is stopping");
  if (fresh.settings) report.mistakes = find_unchangeable(begun_with_, *fresh.settings, reloading_.file());
  if (!report.mistakes.empty()) {
    auto last = std::move(report.mistakes.back());
    report.mistakes.pop_back();
    return refuse(std::move(last));
  }
  auto listeners = listeners_->prepare(fresh.settings->listeners);
  if (!listeners) return refuse(listeners.error().message);
  tidy();
  auto draft = editions_.make(*fresh.settings, std::move(fresh.servers), names_);
  if (!draft) return refuse(draft.error().message);
  put_in_force(std::move(*fresh.settings), std::move(*draft), std::move(*listeners), report);
  return report;
}

// Nothing here fails, but for want of memory.
void Program::put_in_force(Settings settings, Editions::Draft draft, std::vector<Listeners::Wanted> listeners,
                           ReloadReport& report) {
  settings_ = std::move(settings);
  report.changes = std::move(draft.changes);
  make_room_for_counters();
  const auto edition = editions_.put_in_force(std::move(draft));
  in_flight_.set_most(settings_.server.max_in_flight);
  crowd_.set_most(settings_.server.max_connections_per_ip);
  log_.set_level(settings_.log.level);
  for (const auto& worker : workers_) worker->begin(edition);
  for (auto& change : listeners_->put_in_force(std::move(listeners), most_sessions()))
    report.changes.push_back(std::move(change));
  listeners_->look_at_certificates();
  listeners_->look_at_certificates_every(settings_.server.certificate_check);
  prober_.watch(edition->fleets);
  if (admin_) admin_->renew(sources());
  table_.put_in_order(clock_.now());
  for (const auto& warning : settings_.warnings) log_.warning(warning);
  for (const auto& change : report.changes) log_.info("reload: " + change);
  log_.info("reload: the configuration was read anew");
}

void Program::make_room_for_counters() {
  for (const auto& worker : workers_) worker->counters().make_room(editions_.shape());
}

// What no request needs any more.
void Program::tidy() {
  std::vector<observe::Counters*> counters;
  for (const auto& worker : workers_) counters.push_back(&worker->counters());
  editions_.tidy(counters);
}

void Program::start_admin() {
  if (!settings_.admin.address) return;
  admin::ServerOptions options;
  options.address = *settings_.admin.address;
  options.token = settings_.admin.token;
  options.fault = [this](std::string_view what) { log_.warning(what); };
  admin_ = need(admin::Server::listen(control_, std::move(options), sources()));
  log_.info("admin on " + admin_->bound().to_string());
}

admin::Sources Program::sources() {
  admin::Sources sources;
  sources.version = WEIR_VERSION;
  for (const auto& worker : workers_) sources.counters.push_back(&worker->counters());
  sources.routes = editions_.route_names();
  for (const auto& rule : editions_.current().config.rules) sources.rules.push_back(admin::describe(rule));
  sources.upstreams = editions_.upstream_names();
  sources.servers = [this] { return servers(); };
  sources.key_table = [this] { return table_.stats(); };
  sources.process = admin::read_process_figures;
  sources.load = [this] { return load(); };
  sources.readiness = [this] { return readiness(); };
  sources.certificates = [this] { return listeners_->certificates(); };
  sources.reload = [this](admin::ReloadDone done) {
    reload([told = std::move(done)](const ReloadReport& report) { told({report.mistakes, report.changes}); });
  };
  sources.reloads = [this] {
    return admin::ReloadFigures{.ok = reloading_.succeeded(),
                                .failed = reloading_.failed(),
                                .last_ok = reloading_.last_succeeded(),
                                .last = std::chrono::floor<std::chrono::seconds>(reloading_.since())};
  };
  if (redis_units_)
    sources.leases = [this] {
      const auto stats = redis_units_->stats();
      return admin::LeaseFigures{.taken = stats.taken,
                                 .spent = stats.spent,
                                 .put_back = stats.put_back,
                                 .returned = stats.returned,
                                 .lost = stats.lost,
                                 .held = stats.held(),
                                 .crowded = stats.crowded};
    };
  if (!needs_redis(begun_with_)) return sources;
  sources.redis = [this] {
    std::vector<admin::RedisFigures> figures;
    for (const auto& worker : workers_) {
      const auto& stats = worker->redis()->stats();
      figures.push_back({.up = worker->redis()->state() == redis::StoreState::Up,
                         .calls = stats.calls,
                         .failures = stats.failures,
                         .timeouts = stats.timeouts,
                         .reconnects = stats.connects > 0 ? stats.connects - 1 : 0,
                         .amendments = stats.refunds,
                         .amendments_lost = stats.refunds_lost});
    }
    return figures;
  };
  return sources;
}

std::vector<admin::ServerFigures> Program::servers() const {
  std::vector<admin::ServerFigures> figures;
  for (const auto& fleet : editions_.current().fleets)
    for (std::size_t at = 0; at < fleet->size(); ++at) {
      const auto& member = fleet->member(at);
      figures.push_back({.upstream = fleet->settings().name,
                         .server = member.server().name,
                         .healthy = member.serves(),
                         .ejections = member.ejections()});
    }
  return figures;
}

// What workers measure is known only where some rule looks at it; the rest is asked anew.
std::vector<std::pair<const char*, double>> Program::load() {
  using proxy::LoadKind;
  std::vector<std::pair<const char*, double>> load;
  const auto name = [](LoadKind kind) { return proxy::kLoadKindNames[static_cast<std::size_t>(kind)]; };
  const auto busiest = [&](LoadKind kind) {
    double most = 0;
    for (const auto& worker : workers_) most = std::max(most, worker->load().part(kind));
    return most;
  };
  if (editions_.current().config.elastic)
    for (const auto kind : {LoadKind::Lag, LoadKind::Cpu}) load.emplace_back(name(kind), busiest(kind));
  load.emplace_back(name(LoadKind::Queue), queue_.fullness());
  load.emplace_back(name(LoadKind::InFlight), std::min(1.0, in_flight_.fullness()));
  return load;
}

admin::Readiness Program::readiness() const {
  if (draining_) return {.ready = false, .detail = "draining"};
  const auto waits = [](const auto& worker) { return worker->waits_for_redis(); };
  if (std::any_of(workers_.begin(), workers_.end(), waits))
    return {.ready = false, .detail = "waiting for redis before it takes requests"};
  const bool redis_up = std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    return worker->redis() == nullptr || worker->redis()->state() == redis::StoreState::Up;
  });
  return {.ready = true,
          .detail = redis_up ? "" : "redis is not reachable; its rules go by on_store_failure"};
}

// The first asks for a drain, the second for an end.
void Program::on_signal(int signal) {
  if (signal == SIGHUP) {
    log_.info("SIGHUP: reading the configuration anew");
    return reload({});
  }
  if (draining_) {
    log_.info("stopping at once");
    for (const auto& worker : workers_) worker->stop();
    return;
  }
  draining_ = true;
  supervision_.stopping(settings_.server.drain);
  log_.info("draining: finishing what was begun, at most " +
            std::to_string(base::ceil_seconds(settings_.server.drain)) + " s");
  for (const auto& worker : workers_) worker->drain();
  drain_deadline_.expires_after(settings_.server.drain);
  drain_deadline_.async_wait([this](const net::ErrorCode& error) {
    if (error) return;
    log_.warning("the drain took too long: ending what is left");
    for (const auto& worker : workers_) worker->stop();
  });
}

// Goes round the whole table about once a minute.
void Program::sweep_later() {
  constexpr std::chrono::milliseconds kEvery{100};
  constexpr std::size_t kRounds = 600;
  sweep_timer_.expires_after(kEvery);
  sweep_timer_.async_wait([this](const net::ErrorCode& error) {
    if (error) return;
    table_.sweep(clock_.now(), settings_.state.max_keys / (8 * kRounds) + 16);
    sweep_later();
  });
}

void Program::start_supervision() {
  std::vector<net::Executor> loops;
  for (const auto& worker : workers_) loops.push_back(worker->loop());
  supervision_.start(std::move(loops), [this] { return readiness().ready; });
}

// The last lines of the logs are written before the end, but a pipe that nobody reads would take none of them
// for ever.
void end_soon() {
  std::thread([] {
    constexpr std::chrono::seconds kForLastLines{2};
    std::this_thread::sleep_for(kForLastLines);
    std::_Exit(0);
  }).detach();
}

int Program::serve() {
  signals_.listen([this](int signal) { on_signal(signal); });
  sweep_later();
  listeners_->look_at_certificates_every(settings_.server.certificate_check);
  if (admin_) admin_->start();
  for (const auto& worker : workers_) worker->start();
  start_supervision();
  std::thread joiner([this] {
    for (const auto& worker : workers_) worker->join();
    control_.stop();
  });
  control_.run();
  joiner.join();
  snapshot_.save(table_, {.names = names_.table, .saved_at = clock_.now()}, editions_.saved_rules());
  end_soon();
  log_.info("stopped");
  return 0;
}

}  // namespace

int run(const Settings& settings, const std::string& file) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    Program program(settings, look_up_servers(settings), file);
    return program.serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir: %s\n", error.what());
    return 1;
  }
}

}  // namespace weir::app
