#include "weir/app/run.hpp"

#include "app/certificates.hpp"
#include "app/descriptors.hpp"
#include "app/settings_sections.hpp"
#include "app/signals.hpp"
#include "app/snapshot_file.hpp"
#include "app/supervision.hpp"
#include "app/worker_thread.hpp"

#include "weir/admin/alerts.hpp"
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
#include <deque>
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

// Clients stay on their servers across restarts, and weirs that share nothing agree on them as well.
base::SipKey balance_key(const std::string& secret) {
  return secret.empty() ? base::SipKey{} : shared_key(secret);
}

proxy::Configuration configure(const Settings& settings) {
  proxy::Configuration config{
      .server = settings.server,
      .client = settings.client,
      .routes = settings.routes,
      .tier_priorities = settings.tier_priorities,
      .rules = settings.rules,
      .elastic = asks_for_load(settings),
      .inspects = asks_for_bodies(settings),
      .settles = asks_for_answers(settings),
      .names = {.table = random_key(),
                .shared = shared_key(settings.state.key_secret),
                .places = settings.state.redis && settings.state.redis->topology == redis::Topology::Cluster},
      .balance = balance_key(settings.state.key_secret),
      .upstreams = settings.upstreams,
      .servers = {}};
  for (const auto& upstream : config.upstreams)
    config.servers.push_back(need(upstream::resolve_servers(upstream)));
  return config;
}

unsigned count_workers(const proxy::ServerSettings& server) {
  return server.workers != 0 ? server.workers : std::max(1U, std::thread::hardware_concurrency());
}

bool needs_redis(const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [](const policy::Rule& rule) { return rule.store == policy::Store::Redis; });
}

bool takes_leases(const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [](const policy::Rule& rule) { return rule.lease.has_value(); });
}

}  // namespace

namespace {

// The main thread's part: everything that workers share, the admin page, signals, and the slow sweep of the
// table.
class Program {
 public:
  // `config` is made before: its names are looked up while the system's default of SIGTERM still holds.
  Program(const Settings& settings, proxy::Configuration config);
  int serve();

 private:
  void open_listeners();
  void start_admin();
  [[nodiscard]] admin::Sources sources();
  [[nodiscard]] std::vector<admin::ServerFigures> servers() const;
  [[nodiscard]] std::vector<std::pair<const char*, double>> load();
  [[nodiscard]] admin::Readiness readiness() const;
  void on_signal(int signal);
  void sweep_later();
  void start_supervision();

  const Settings& settings_;
  net::asio::io_context control_{1};
  // Before the first thread, which is the log's.
  Signals signals_{control_.get_executor(), {SIGTERM, SIGINT, SIGHUP}};
  Log log_;
  AccessLog access_log_;
  const std::vector<limit::SavedRule> saved_rules_;
  SnapshotFile snapshot_;
  net::Clock clock_;
  proxy::Configuration config_;
  limit::KeyTable table_;
  const unsigned worker_count_;
  proxy::SharedQueue queue_;
  proxy::InFlight in_flight_;
  std::deque<upstream::Fleet> fleets_;
  proxy::Crowd crowd_;
  std::optional<upstream::Prober> prober_;
  redis::LastRefunds redis_refunds_;
  std::optional<redis::UnitLeases> redis_units_;
  proxy::Shared shared_;
  net::Timer drain_deadline_{control_.get_executor()};
  net::Timer sweep_timer_{control_.get_executor()};
  std::vector<std::unique_ptr<WorkerThread>> workers_;
  std::unique_ptr<CertificateWatch> certificates_;
  std::unique_ptr<admin::Alerts> alerts_;
  std::unique_ptr<admin::Server> admin_;
  Supervision supervision_{control_.get_executor(), notify_environment(), log_};
  bool draining_ = false;
};

Program::Program(const Settings& settings, proxy::Configuration config)
    : settings_(settings),
      log_(settings.log.level),
      access_log_(settings.log.access),
      saved_rules_(policy::saved_rules(settings.rules)),
      snapshot_(settings.state.snapshot, saved_rules_, net::Clock().now(), log_),
      clock_(snapshot_.found() ? snapshot_.found()->saved_at : base::TimePoint{}),
      config_(std::move(config)),
      table_(settings.state.max_keys),
      worker_count_(count_workers(settings.server)),
      queue_(worker_count_),
      in_flight_(settings.server.max_in_flight),
      crowd_(settings.server.max_connections_per_ip),
      shared_{config_, clock_, table_, queue_, in_flight_, fleets_, crowd_} {
  for (const auto& warning : settings.warnings) log_.warning(warning);
  const auto descriptors = raise_descriptor_limit(settings.server.max_connections);
  if (!descriptors.warning.empty()) log_.warning(descriptors.warning);
  // Names of a table that is filled from a snapshot are made under the key of the weir that wrote it.
  if (snapshot_.found()) config_.names.table = snapshot_.found()->names;
  snapshot_.restore(table_, saved_rules_, clock_.now());
  for (std::size_t i = 0; i < config_.upstreams.size(); ++i)
    fleets_.emplace_back(config_.upstreams[i], config_.servers[i],
                         [this](const std::string& change) { log_.warning(change); });
  prober_.emplace(control_.get_executor(), clock_, fleets_);
  if (takes_leases(settings))
    redis_units_.emplace(settings.state.redis->lease_keys, settings.state.redis->lease_return);
  const WorkerParts parts{.shared = shared_,
                          .redis = needs_redis(settings) ? &*settings.state.redis : nullptr,
                          .redis_refunds = redis_refunds_,
                          .redis_units = redis_units_ ? &*redis_units_ : nullptr,
                          .access_log = access_log_,
                          .log = log_,
                          .most_sessions = std::max<std::size_t>(1, descriptors.connections / worker_count_)};
  for (unsigned i = 0; i < worker_count_; ++i) workers_.push_back(std::make_unique<WorkerThread>(parts));
  open_listeners();
  if (!settings.alerts.empty())
    alerts_ = std::make_unique<admin::Alerts>(control_.get_executor(), settings.alerts, sources(),
                                              [this](const std::string& line) { log_.warning(line); });
  start_admin();
}

void Program::open_listeners() {
  certificates_ = std::make_unique<CertificateWatch>(control_.get_executor(), settings_.listeners, log_,
                                                     [this](std::size_t listener, SSL_CTX* fresh) {
                                                       for (const auto& worker : workers_)
                                                         worker->renew(listener, net::share(fresh));
                                                     });
  if (const auto fault = certificates_->read()) throw CannotStart(fault->message);
  for (std::size_t i = 0; i < settings_.listeners.size(); ++i) {
    SSL_CTX* const tls = certificates_->context(i);
    const bool proxied = settings_.listeners[i].proxy_protocol;
    auto first = need(net::ListeningSocket::open(settings_.listeners[i].address));
    for (std::size_t j = 1; j < workers_.size(); ++j)
      workers_[j]->listen_on(need(first.again()), net::share(tls), proxied);
    log_.info(std::string(tls != nullptr ? "TLS " : "") + "listening on " + first.address().to_string());
    workers_[0]->listen_on(std::move(first), net::share(tls), proxied);
  }
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
  sources.started = clock_.now();
  sources.now = [this] { return clock_.now(); };
  for (const auto& worker : workers_) sources.counters.push_back(&worker->counters());
  for (const auto& route : config_.routes) sources.routes.push_back(route.name);
  for (const auto& rule : config_.rules) sources.rules.push_back(admin::describe(rule));
  for (const auto& upstream : config_.upstreams) sources.upstreams.push_back(upstream.name);
  sources.servers = [this] { return servers(); };
  sources.key_table = [this] { return table_.stats(); };
  sources.process = admin::read_process_figures;
  sources.load = [this] { return load(); };
  sources.readiness = [this] { return readiness(); };
  sources.certificates = [this] { return certificates_->figures(); };
  if (alerts_) sources.alerts = [this] { return alerts_->figures(); };
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
  if (!needs_redis(settings_)) return sources;
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
  for (const auto& fleet : fleets_)
    for (std::size_t at = 0; at < fleet.size(); ++at) {
      const auto& member = fleet.member(at);
      figures.push_back({.upstream = fleet.settings().name,
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
  if (config_.elastic)
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
    log_.warning(
        "SIGHUP: this version of weir reads certificates anew, and nothing else; nothing else was changed");
    supervision_.reloading();
    certificates_->look();
    return supervision_.ready();
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
  certificates_->look_every(settings_.server.certificate_check);
  if (alerts_) alerts_->start();
  if (admin_) admin_->start();
  prober_->start();
  for (const auto& worker : workers_) worker->start();
  start_supervision();
  std::thread joiner([this] {
    for (const auto& worker : workers_) worker->join();
    control_.stop();
  });
  control_.run();
  joiner.join();
  snapshot_.save(table_, {.names = config_.names.table, .saved_at = clock_.now()}, saved_rules_);
  end_soon();
  log_.info("stopped");
  return 0;
}

}  // namespace

int run(const Settings& settings) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    Program program(settings, configure(settings));
    return program.serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir: %s\n", error.what());
    return 1;
  }
}

}  // namespace weir::app
