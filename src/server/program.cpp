#include "server/program.hpp"

#include "server/process/descriptors.hpp"

#include "weir/base/units.hpp"
#include "weir/config/locations.hpp"
#include "weir/config/settings_needs.hpp"
#include "weir/policy/api_keys.hpp"
#include "weir/policy/saved_rule.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include <boost/asio/post.hpp>
#include <sys/random.h>

namespace weir::server {

namespace {

base::SipKey random_key() {
  base::SipKey key;
  if (::getrandom(&key, sizeof key, 0) != sizeof key)
    throw config::CannotStart("the system provides no random numbers");
  return key;
}

// Returns the same key in every process with the same key_secret; a random key if key_secret is empty.
base::SipKey shared_key(const std::string& secret) {
  if (secret.empty()) return random_key();
  const auto digest = policy::ApiKeys::digest(secret);
  base::SipKey key;
  std::memcpy(&key, digest.data(), sizeof key);
  return key;
}

// Returns true if the old process has handed over a shared key for clients' names. If the old process has no
// shared key, it hands over zeros.
bool has_shared_name_key(const upgrade::Takeover* takeover) {
  return takeover != nullptr && takeover->carried_state().shared != base::SipKey{};
}

// Returns the keys for clients' names. Keeps the keys of an old process, so that the names do not change.
policy::NamingKeys naming_keys(const config::Settings& settings, const upgrade::Takeover* takeover) {
  const bool handed = has_shared_name_key(takeover) && settings.state.key_secret.empty();
  return {.table = takeover != nullptr ? takeover->carried_state().table : random_key(),
          .shared = handed ? takeover->carried_state().shared : shared_key(settings.state.key_secret),
          .slot_hashes = settings.state.redis && settings.state.redis->topology == redis::Topology::Cluster};
}

// Returns the duration that weir must add to times of an earlier process. This is the old process of an
// upgrade (`takeover`), or the process that wrote the snapshot `found`. The result is how far the machine's
// clock was ahead of that process's clock, or zero if the two differed by at most kClocksAgree.
base::Duration shift_to_now(const std::optional<limit::Snapshot>& found, const upgrade::Takeover* takeover) {
  if (takeover == nullptr)
    return found ? limit::shift_of(*found, net::Clock::machine_now()) : base::Duration{0};
  const auto ahead = net::Clock::at_offset(takeover->carried_state().clock).machine_ahead();
  return std::chrono::abs(ahead) <= limit::kClocksAgree ? base::Duration{0} : ahead;
}

// Returns the clock of this process. In an upgrade it is the old process's clock, moved by `shift`. Otherwise
// it starts at the machine's time; but if `shift` is 0, not before the time at which the snapshot was saved.
net::Clock clock_after(base::Duration shift, const std::optional<limit::Snapshot>& found,
                       const upgrade::Takeover* takeover) {
  if (takeover != nullptr) return net::Clock::at_offset(takeover->carried_state().clock + shift);
  return net::Clock(found && shift.count() == 0 ? found->saved_at : base::TimePoint{});
}

unsigned count_workers(const proxy::ServerSettings& server) {
  return server.workers != 0 ? server.workers : std::max(1U, std::thread::hardware_concurrency());
}

constexpr std::chrono::seconds kForLastAnswers{1};

// Ends the process after kForLastLines if it still runs then. If the log is a pipe that nobody reads, writing
// the last lines may otherwise block forever.
void end_soon() {
  std::thread([] {
    constexpr std::chrono::seconds kForLastLines{2};
    std::this_thread::sleep_for(kForLastLines);
    std::_Exit(0);
  }).detach();
}

}  // namespace

Program::Program(const config::Settings& settings, config::LookupResult servers, std::string file,
                 upgrade::PassedSockets passed, upgrade::Takeover* takeover)
    : settings_(settings),
      initial_settings_(settings),
      log_(settings.log.level),
      access_log_(
          settings.log.access, [this](const std::string& line) { log_.warning(line); }, settings.log.fields),
      spans_(settings.tracing
                 ? std::make_unique<log::SpanExporter>(
                       *settings.tracing, [this](const std::string& line) { log_.warning(line); })
                 : nullptr),
      passed_(std::move(passed)),
      takeover_(takeover),
      snapshot_(settings.state.snapshot, policy::saved_rules(settings.rules), log_, takeover == nullptr),
      shift_(shift_to_now(snapshot_.found(), takeover)),
      clock_(clock_after(shift_, snapshot_.found(), takeover)),
      names_(naming_keys(settings, takeover)),
      names_agreed_(!config::needs_redis(settings) || !settings.state.key_secret.empty() ||
                    has_shared_name_key(takeover)),
      table_(settings.state.max_keys),
      config_snapshots_(control_, table_, clock_, log_, [this] { clean_up(); }),
      worker_count_(count_workers(settings.server)),
      queue_(worker_count_),
      in_flight_(settings.server.max_in_flight),
      connections_per_ip_(settings.server.max_connections_per_ip),
      body_memory_(settings.server.max_body_memory),
      prober_(control_.get_executor(), clock_),
      resolver_(
          control_, clock_, [this](const std::string& line) { log_.warning(line); },
          [this](const upstream::ResolvedUpstream& upstream) { change_servers(upstream); }),
      shared_{clock_,       table_,       queue_,       in_flight_,        connections_per_ip_,
              body_memory_, &clock_step_, spans_.get(), challenges_.get(), &permit_owners_},
      reloading_(file_thread_, std::move(file), settings_,
                 [this](FreshConfiguration fresh) { return apply(std::move(fresh)); }),
      upgrade_(control_.get_executor(), callbacks(), log_) {
  for (const auto& warning : settings.warnings) log_.warning(warning.where + ": " + warning.what);
  // The names in the snapshot file were made with this key, so weir must continue to use the key.
  if (snapshot_.found()) names_.table = snapshot_.found()->names;
  for (const auto& line : servers.unknown)
    log_.warning(line + "; the server is down until the lookup succeeds");
  auto files = ClientFiles::uses_in(settings_);
  start_workers(std::move(servers.upstreams));
  client_files_.watch(std::move(files));
  token_keys_.watch(settings_.client);
  alerts_ = std::make_unique<admin::Alerts>(control_.get_executor(), settings_.alerts, sources(),
                                            [this](const std::string& line) { log_.warning(line); });
  start_admin();
  for (const auto& place : passed_.unclaimed())
    log_.warning(
        "systemd passed a socket on " + place +
        ", which no [[listener]] has; add one with that address, or remove the socket from the unit");
}

void Program::start_workers(std::vector<upstream::ResolvedUpstream> upstreams) {
  auto config_snapshot =
      config_snapshots_.activate(need(make_config_snapshot(settings_, std::move(upstreams))));
  snapshot_.restore(table_, config_snapshots_.saved_rules(), {clock_.now(), shift_},
                    [this](const limit::FormerRule& former) { return config_snapshots_.adopt(former); });
  if (takeover_ == nullptr && table_.stats().keys == 0) access_log_.begin_run();
  if (config::takes_leases(settings_))
    shared_grants_.emplace(settings_.state.redis->lease_keys, settings_.state.redis->lease_return);
  const WorkerParts parts{
      .shared = shared_,
      .config_snapshot = std::move(config_snapshot),
      .shape = config_snapshots_.shape(),
      .redis = config::needs_redis(initial_settings_) ? &*initial_settings_.state.redis : nullptr,
      .redis_refunds = redis_refunds_,
      .shared_grants = shared_grants_ ? &*shared_grants_ : nullptr,
      .access_log = access_log_,
      .log = log_,
      .top = initial_settings_.admin.address ? initial_settings_.admin.top : 0};
  for (unsigned i = 0; i < worker_count_; ++i) workers_.push_back(std::make_unique<WorkerThread>(parts));
  adaptation_.watch(config_snapshots_.current().config);
  prober_.watch(config_snapshots_.current().server_groups);
  resolver_.watch(config_snapshots_.current().server_groups, settings_.server.nameservers);
  listeners_.emplace(control_.get_executor(), workers_, log_, challenges_);
  listeners_->inherit([this](const base::Endpoint& address) { return inherited(address); },
                      [this](const base::Endpoint& address) { return passed_.took(address); });
  listeners_->activate(need(listeners_->prepare(settings_)), most_sessions());
}

std::size_t Program::most_sessions() {
  const auto descriptors = raise_descriptor_limit(settings_.server.max_connections);
  if (!descriptors.warning.empty()) log_.warning(descriptors.warning);
  return std::max<std::size_t>(1, descriptors.connections / worker_count_);
}

// Returns the sockets for a listener that come from the old process of an upgrade or from systemd. If there
// are none, the listener opens its own sockets.
std::vector<net::ListeningSocket> Program::inherited(const base::Endpoint& listener) {
  auto sockets =
      takeover_ != nullptr ? takeover_->take_listeners(listener) : std::vector<net::ListeningSocket>();
  return sockets.empty() ? passed_.take(listener) : std::move(sockets);
}

void Program::start_admin() {
  if (!settings_.admin.address) return;
  admin::ServerOptions options;
  options.address = *settings_.admin.address;
  options.token = settings_.admin.token;
  auto inherited =
      takeover_ != nullptr ? takeover_->take_admin(options.address) : std::vector<net::ListeningSocket>();
  if (inherited.empty()) inherited = passed_.take(options.address);
  options.fault = [this](std::string_view what) { log_.warning(what); };
  admin_ = need(config::with_location(
      settings_.locations, "[admin]",
      admin::Server::listen(control_, std::move(options), sources(), std::move(inherited))));
  const auto name = settings_.admin.address->host;
  for (const auto& place : admin_->addresses())
    log_.info("admin on " + place.to_string() +
              (net::is_name(*settings_.admin.address) ? ", an address of " + name : ""));
}

// Returns the header for a snapshot that weir writes now.
limit::Snapshot Program::snapshot_header() const {
  return {.names = names_.table, .saved_at = clock_.now(), .machine_at = net::Clock::machine_now()};
}

void Program::on_signal(int signal) {
  if (signal == SIGUSR1) {
    log_.info("SIGUSR1: reopening the access log");
    return access_log_.reopen();
  }
  if (signal == SIGUSR2) {
    log_.info("SIGUSR2: starting an upgrade");
    return upgrade({});
  }
  if (signal == SIGHUP) {
    log_.info("SIGHUP: reloading the configuration");
    return reload({});
  }
  on_stop_signal();
}

// The first stop signal starts drain_delay, the next one the drain, and the last one ends the process at
// once. There is no delay if drain_delay is 0, or if weir is not ready, because balancers then send weir no
// requests.
void Program::on_stop_signal() {
  if (draining_) return stop_at_once();
  const bool delays = !stopping_ && settings_.server.drain_delay.count() > 0 && readiness().ready;
  stopping_ = true;
  reload_pending_ = false;
  upgrade_.abandon();
  if (delays) return delay_drain();
  begin_drain();
}

void Program::stop_at_once() {
  // An old process drains since it handed over to the new one. Ctrl-C reaches both processes. The old process
  // continues its drain after the first stop signal, and stops at once only after the second.
  if (handoff_sender_ && !std::exchange(stop_requested_, true)) return;
  log_.info("stopping at once");
  if (handoff_receiver_) handoff_receiver_->close();
  for (const auto& worker : workers_) worker->stop();
}

// Serves as before during drain_delay, but reports that weir is not ready. So balancers send new requests
// elsewhere before weir closes its listeners.
void Program::delay_drain() {
  const auto delay = settings_.server.drain_delay;
  supervision_.stopping_after(delay, settings_.server.drain);
  for (const auto& worker : workers_) worker->announce_stop();
  log_.info("stopping: not ready any more; still serving for " + std::to_string(base::ceil_seconds(delay)) +
            " s (drain_delay), then draining");
  stop_timer_.expires_after(delay);
  stop_timer_.async_wait([this](const net::ErrorCode& error) {
    if (!error && !draining_) begin_drain();
  });
}

void Program::begin_drain() {
  supervision_.stopping(settings_.server.drain);
  // Gives the workers the connections that have arrived from the old process. Must precede their drain(),
  // because a worker without connections ends as soon as it drains.
  if (handoff_receiver_) handoff_receiver_->end();
  listeners_->end();
  for (const auto& worker : workers_) worker->drain();
  drain();
}

// Starts the time limit of the drain, after which the workers close the remaining connections. REQUIRES that
// the workers already drain.
void Program::drain() {
  stopping_ = draining_ = true;
  log_.info("draining: completing open requests within " +
            std::to_string(base::ceil_seconds(settings_.server.drain)) + " s");
  stop_timer_.expires_after(settings_.server.drain);
  stop_timer_.async_wait([this](const net::ErrorCode& error) {
    if (error) return;
    log_.warning("the drain took too long; closing the remaining connections");
    if (handoff_receiver_) handoff_receiver_->close();
    for (const auto& worker : workers_) worker->stop();
  });
}

// Logs a line if the machine's clock was set, or if the machine slept.
void Program::check_clocks() {
  const auto ahead = clock_.machine_ahead();
  switch (clock_step_.update(ahead)) {
    case net::ClockStep::Change::None:
      return;
    case net::ClockStep::Change::Apart:
      return log_.warning(
          "clock: the system clock is " +
          base::to_readable(std::chrono::round<std::chrono::seconds>(std::chrono::abs(ahead))) +
          (ahead.count() < 0 ? " behind" : " ahead of") +
          " the clock that limits use; limits, calendars and hours keep their clock until a restart or "
          "upgrade; tokens, dates and logs follow the system clock");
    case net::ClockStep::Change::Agree:
      return log_.info("clock: the system clock and the clock that limits use agree again");
  }
}

// Sweeps a part of the key table every 100 ms. It takes about a minute to sweep the whole table.
void Program::sweep_later() {
  constexpr std::chrono::milliseconds kEvery{100};
  constexpr std::size_t kRounds = 600;
  sweep_timer_.expires_after(kEvery);
  sweep_timer_.async_wait([this](const net::ErrorCode& error) {
    if (error) return;
    check_clocks();
    table_.sweep(clock_.now(), settings_.state.max_keys / (8 * kRounds) + 16);
    sweep_later();
  });
}

void Program::start_supervision() {
  std::vector<net::Executor> loops;
  for (const auto& worker : workers_) loops.push_back(worker->loop());
  supervision_.start(std::move(loops), [this] { return readiness().ready; });
}

// Ends the control loop. First waits until the admin listener has sent its replies, but at most until
// `latest`. If this process has already handed over, also waits while its old process still sends
// connections. This process passes these connections on to the new process.
void Program::end_control(std::chrono::steady_clock::time_point latest) {
  constexpr std::chrono::milliseconds kPollInterval{5};
  const bool answers = admin_ && admin_->is_answering() && std::chrono::steady_clock::now() < latest;
  const bool passes_on = handoff_sender_ && handoff_receiver_ && handoff_receiver_->are_expected();
  if (!answers && !passes_on) return control_.stop();
  sweep_timer_.expires_after(kPollInterval);
  sweep_timer_.async_wait([this, latest](const net::ErrorCode&) { end_control(latest); });
}

// Returns the callbacks for the thread that orders certificates.
acme::Manager::Callbacks Program::acme_callbacks() {
  return {.info = [this](const std::string& line) { log_.info(line); },
          .warning = [this](const std::string& line) { log_.warning(line); },
          .changed = [this] { net::asio::post(control_, [this] { listeners_->reread_certificates(); }); }};
}

int Program::serve() {
  signals_.listen([this](int signal) { on_signal(signal); });
  sweep_later();
  config_watch_.watch(settings_.files);
  watch_configuration();
  listeners_->reread_certificates_every(settings_.server.certificate_check);
  client_files_.check_every(settings_.server.certificate_check);
  alerts_->start();
  acme_.configure(settings_.acme, config::acme_certificates(settings_));
  for (const auto& worker : workers_) worker->start(takeover_ == nullptr);
  if (takeover_ != nullptr) take_over();
  start_shared_secret();
  if (admin_) admin_->start();
  start_supervision();
  std::thread joiner([this] {
    for (const auto& worker : workers_) worker->join();
    net::asio::post(control_, [this] { end_control(std::chrono::steady_clock::now() + kForLastAnswers); });
  });
  control_.run();
  joiner.join();
  if (handoff_sender_)
    log_.info("upgrade: requests decided by the old process since the new one took over: " +
              std::to_string(decided_apart()));
  else
    snapshot_.save(table_, snapshot_header(), config_snapshots_.saved_rules());
  end_soon();
  log_.info("stopped");
  return 0;
}

}  // namespace weir::server
