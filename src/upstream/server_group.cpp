#include "weir/upstream/server_group.hpp"

#include "weir/net/dns_lookup.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdio>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>

namespace weir::upstream {

namespace {

// How long a caller should wait if `max_in_flight` is reached. This is only a hint, because weir cannot know
// when a request in flight will end. Concurrency limits use the same hint.
constexpr base::Duration kPerhaps{1'000'000};

std::uint64_t seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U | device()) | 1U;
}

// Returns a random number by xorshift64*, which is good enough to spread points in time.
std::uint64_t next(std::uint64_t& random) noexcept {
  random ^= random >> 12U;
  random ^= random << 25U;
  random ^= random >> 27U;
  return random * 0x2545F4914F6CDD1DULL;
}

std::string seconds(base::Duration time) {
  std::array<char, 32> text;
  const auto size =
      std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(time.count()) / 1e6);
  return {text.data(), static_cast<std::size_t>(size)};
}

net::TlsContext make_tls(const UpstreamSettings& settings) {
  const auto speaks = [](const ServerSettings& server) { return server.tls; };
  if (std::none_of(settings.servers.begin(), settings.servers.end(), speaks)) return {};
  auto made = net::make_tls_client_context(settings.tls);
  if (!made) throw std::runtime_error("upstream \"" + settings.name + "\": " + made.error().message);
  return std::move(*made);
}

bool have_priorities(const std::vector<ServerSettings>& servers) {
  return std::any_of(servers.begin(), servers.end(), [&](const ServerSettings& server) {
    return server.priority != servers.front().priority;
  });
}

}  // namespace

base::Result<std::vector<Server>> resolve_servers(const UpstreamSettings& settings) {
  std::vector<base::Endpoint> addresses;
  for (const auto& server : settings.servers) addresses.push_back(server.address);
  auto found = net::look_up_all(addresses, {});
  std::vector<Server> servers;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (!found[i]) return base::Error{"upstream \"" + settings.name + "\": " + found[i].error().message};
    servers.push_back({addresses[i].to_string(), std::move(found[i]->addresses)});
  }
  return servers;
}

ServerGroup::ServerGroup(UpstreamSettings settings, std::vector<Server> servers, Report report,
                         const ServerGroup* older)
    : settings_(std::move(settings)),
      report_(std::move(report)),
      tls_(make_tls(settings_)),
      queue_(older != nullptr ? older->queue_ : std::make_shared<ServerQueue>()),
      has_priorities_(have_priorities(settings_.servers)) {
  assert(servers.size() == settings_.servers.size());
  const auto* const listed = older;
  // After a reload that adds or removes probes, all servers start with a new state. Otherwise, if the reload
  // removes probes, a server that is down would wait for a good probe forever.
  if (older != nullptr && older->settings_.health.has_value() != settings_.health.has_value())
    older = nullptr;
  // One bit for each older member whose state a new member has already taken over. Two servers may have the
  // same name, so each older member must be used only once.
  std::uint64_t taken = 0;
  for (std::size_t at = 0; at < servers.size(); ++at) {
    const Member* before = nullptr;
    for (std::size_t i = 0; older != nullptr && before == nullptr && i < older->size(); ++i) {
      if ((taken >> i & 1U) != 0 || older->member(i).server() != servers[at]) continue;
      before = &older->member(i);
      taken |= std::uint64_t{1} << i;
    }
    const auto* const namesake = listed != nullptr ? listed->find(servers[at].name) : nullptr;
    auto control = namesake != nullptr ? namesake->control() : std::make_shared<ServerControl>();
    members_.emplace_back(*this, std::move(servers[at]), settings_.servers[at], before, std::move(control));
  }
}

// Shares the older member's bucket only if both members have the same `limit`, because the units in the
// bucket belong to that limit.
ServerGroup::Member::Member(const ServerGroup& server_group, Server server, const ServerSettings& settings,
                            const Member* older, std::shared_ptr<ServerControl> control)
    : server_group_(server_group),
      name_(std::move(server.name)),
      settings_(settings),
      known_(older != nullptr ? older->known_ : std::make_shared<ServerState>(std::move(server.addresses))),
      spent_(older != nullptr && older->settings_.limit == settings.limit ? older->spent_
                                                                          : std::make_shared<limit::Cell>()),
      control_(std::move(control)) {}

// A server without an address starts down. This is not logged, because the failed look-up is already in the
// log.
ServerState::ServerState(Addresses at_first)
    : random(seed()), addresses(std::make_shared<const Addresses>(std::move(at_first))) {
  if (!addresses->empty()) return;
  server_health.absent();
  ejected_until.store(server_health.ejected_until().time_since_epoch().count(), std::memory_order_relaxed);
}

std::string ServerGroup::Member::host() const {
  return settings_.address.is_unix() ? "localhost" : settings_.address.to_string();
}

ServerGroup::Member::Location ServerGroup::Member::location() const {
  const std::scoped_lock lock(known_->mutex);
  return {known_->addresses, known_->first, known_->address_changes.load(std::memory_order_relaxed)};
}

void ServerGroup::Member::begin_with(std::size_t first, const Location& then) noexcept {
  if (first == then.first) return;
  const std::scoped_lock lock(known_->mutex);
  if (known_->addresses == then.addresses) known_->first = first;
}

void ServerGroup::Member::move_to(Addresses addresses, base::TimePoint now) {
  auto next = std::make_shared<const Addresses>(std::move(addresses));
  const std::scoped_lock lock(known_->mutex);
  const auto& before = *known_->addresses;
  const bool anew =
      std::find_first_of(before.begin(), before.end(), next->begin(), next->end()) == before.end();
  const auto first =
      before.empty() ? next->end() : std::find(next->begin(), next->end(), before[known_->first]);
  known_->first = first != next->end() ? static_cast<std::size_t>(first - next->begin()) : 0;
  known_->addresses = std::move(next);
  known_->address_changes.fetch_add(1, std::memory_order_relaxed);
  publish(known_->server_health.moved(anew, now), now, {});
}

bool ServerGroup::Member::begin_trial(base::TimePoint now, bool owed) noexcept {
  const std::scoped_lock lock(known_->mutex);
  const bool mine = known_->server_health.begin_trial(server_group_.settings_.ejection, now, owed);
  publish(ServerHealth::Change::None, now, {});
  return mine;
}

std::uint32_t ServerGroup::Member::weight(base::TimePoint now) const noexcept {
  const base::TimePoint readmitted_at{base::Duration{known_->readmitted_at.load(std::memory_order_relaxed)}};
  return weight_at(full_weight(), server_group_.settings_.ejection.slow_start, readmitted_at, now);
}

std::optional<net::TlsTarget> ServerGroup::Member::tls(SSL_SESSION* session) const noexcept {
  if (!settings_.tls) return std::nullopt;
  return net::TlsTarget{.context = server_group_.tls_.get(), .name = settings_.tls_name, .session = session};
}

void ServerGroup::Member::unreachable(base::TimePoint now, std::string_view fault) noexcept {
  const std::scoped_lock lock(known_->mutex);
  ++known_->failures;
  publish(known_->server_health.unreachable(server_group_.settings_.ejection, now, next(known_->random)), now,
          fault.empty() ? "no connection" : fault);
}

void ServerGroup::Member::failed(base::TimePoint sent, base::TimePoint now) noexcept {
  const std::scoped_lock lock(known_->mutex);
  ++known_->failures;
  publish(known_->server_health.failed(server_group_.settings_.ejection, sent, now, next(known_->random)),
          now, "too many failed responses");
}

void ServerGroup::Member::note_answer(base::TimePoint sent, base::TimePoint now) noexcept {
  const std::scoped_lock lock(known_->mutex);
  publish(known_->server_health.answered(sent, now), now, {});
}

void ServerGroup::Member::probed(bool good, std::string_view fault, base::TimePoint now) noexcept {
  const std::scoped_lock lock(known_->mutex);
  publish(known_->server_health.probed(*server_group_.settings_.health, good, now), now, fault);
}

std::optional<base::Duration> ServerGroup::Member::enter(base::TimePoint now) noexcept {
  if (settings_.max_in_flight != 0) {
    // Checks and counts in one atomic step. If the number in flight exceeded the bound even briefly, weir
    // could refuse another request although there is room.
    auto others = known_->in_flight.load();
    do {
      if (others >= settings_.max_in_flight) return kPerhaps;
    } while (!known_->in_flight.compare_exchange_weak(others, others + 1));
  }
  if (!settings_.limit) return std::nullopt;
  const auto wait = spend(now);
  if (wait) leave();
  return wait;
}

std::optional<base::Duration> ServerGroup::Member::spend(base::TimePoint now) noexcept {
  const std::scoped_lock lock(known_->mutex);
  const auto step = settings_.limit->step(*spent_, now, 1);
  if (!step.outcome.allowed) return step.outcome.retry_after;
  *spent_ = step.next;
  return std::nullopt;
}

bool ServerGroup::Member::would_enter(base::TimePoint now) const noexcept {
  if (!has_room()) return false;
  if (!settings_.limit) return true;
  const std::scoped_lock lock(known_->mutex);
  return settings_.limit->step(*spent_, now, 1).outcome.allowed;
}

void ServerGroup::Member::give_back_unit(base::TimePoint now) noexcept {
  if (!settings_.limit) return;
  const std::scoped_lock lock(known_->mutex);
  *spent_ = limit::refund(*settings_.limit, *spent_, now, 1);
}

std::vector<Server> ServerGroup::servers() const {
  std::vector<Server> servers;
  for (const auto& member : members_) servers.push_back(member.server());
  return servers;
}

const ServerGroup::Member* ServerGroup::find(std::string_view name) const noexcept {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& member) { return member.name() == name; });
  return found != members_.end() ? &*found : nullptr;
}

bool ServerGroup::is_drained() const noexcept {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.control()->is_drained(); });
}

std::uint64_t ServerGroup::preferred(std::uint64_t candidates) const noexcept {
  if (!has_priorities_) return candidates;
  auto least = std::numeric_limits<std::uint16_t>::max();
  std::uint64_t chosen = 0;
  for (; candidates != 0; candidates &= candidates - 1) {
    const auto at = static_cast<std::size_t>(std::countr_zero(candidates));
    const auto priority = settings_.servers[at].priority;
    if (priority > least) continue;
    if (priority < least) chosen = 0;
    least = priority;
    chosen |= candidates & -candidates;
  }
  return chosen;
}

void ServerGroup::pause_until(base::TimePoint at) noexcept {
  const auto until = at.time_since_epoch().count();
  auto now = paused_until_.load(std::memory_order_relaxed);
  while (now < until && !paused_until_.compare_exchange_weak(now, until, std::memory_order_relaxed)) {
  }
}

std::uint64_t ServerGroup::Member::ejections() const {
  const std::scoped_lock lock(known_->mutex);
  return known_->server_health.ejections();
}

std::uint64_t ServerGroup::Member::failures() const {
  const std::scoped_lock lock(known_->mutex);
  return known_->failures;
}

// Publishes the server's state for readers that do not lock the mutex, and logs the change. REQUIRES that the
// caller has locked known_->mutex. The mutex also keeps the log lines in order.
void ServerGroup::Member::publish(ServerHealth::Change change, base::TimePoint now,
                                  std::string_view why) noexcept {
  known_->ejected_until.store(known_->server_health.ejected_until().time_since_epoch().count(),
                              std::memory_order_relaxed);
  known_->open_to_all_from.store(
      known_->server_health.open_to_all_from(server_group_.settings_.ejection).time_since_epoch().count(),
      std::memory_order_relaxed);
  known_->readmitted_at.store(known_->server_health.readmitted_at().time_since_epoch().count(),
                              std::memory_order_relaxed);
  known_->suspect.store(known_->server_health.suspect(), std::memory_order_relaxed);
  if (change == ServerHealth::Change::None) return;
  if (serves()) server_group_.queue_->freed();
  if (!server_group_.report_ || !is_logged(change, now)) return;
  try {
    server_group_.report_(line_of(change, now, why));
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; losing the line is acceptable
  }
}

// Records the change. Returns true if it must be logged. REQUIRES that the caller has locked known_->mutex.
bool ServerGroup::Member::is_logged(ServerHealth::Change change, base::TimePoint now) noexcept {
  using Change = ServerHealth::Change;
  auto& outages = known_->outages;
  if (change == Change::Back) return outages.ends();
  if (change == Change::OutAgain || change == Change::StillDown)
    return outages.goes_on(now, change == Change::OutAgain);
  return outages.begins(now);
}

// Returns the log line for the change. REQUIRES that the caller has locked known_->mutex, and that the change
// is logged.
std::string ServerGroup::Member::line_of(ServerHealth::Change change, base::TimePoint now,
                                         std::string_view why) {
  using Change = ServerHealth::Change;
  auto line = "upstream \"" + server_group_.settings_.name + "\": server " + name_;
  if (change == Change::Back) return line + " is back";
  const auto left = seconds(known_->server_health.ejected_until() - now);
  line += change == Change::Out        ? " is ejected for " + left
          : change == Change::OutAgain ? " stays ejected for another " + left
          : change == Change::Down     ? " is down"
                                       : " is still down";
  line.append(": ").append(why);
  const auto left_out = known_->outages.left_out();
  if (left_out != 0)
    line += "; " + std::to_string(left_out) + (left_out == 1 ? " ejection" : " ejections") +
            " before were not logged";
  return line;
}

}  // namespace weir::upstream
