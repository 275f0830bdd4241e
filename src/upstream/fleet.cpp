#include "weir/upstream/fleet.hpp"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <utility>

namespace weir::upstream {

namespace {

// Of what is in flight nobody knows how long it lasts: the hint that concurrency gives as well.
constexpr base::Duration kPerhaps{1'000'000};

std::uint64_t seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U | device()) | 1U;
}

// xorshift64*: to spread instants needs no better.
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

}  // namespace

base::Result<std::vector<Server>> resolve_servers(const UpstreamSettings& settings) {
  std::vector<Server> servers;
  for (const auto& server : settings.servers) {
    auto found = net::resolve(server.address);
    if (!found) return base::Error{"upstream \"" + settings.name + "\": " + found.error().message};
    servers.push_back({server.address.to_string(), std::move(*found)});
  }
  return servers;
}

Fleet::Fleet(const UpstreamSettings& settings, std::vector<Server> servers, Report report)
    : settings_(settings), report_(std::move(report)), tls_(make_tls(settings)) {
  assert(servers.size() == settings.servers.size());
  for (std::size_t at = 0; at < servers.size(); ++at)
    members_.emplace_back(*this, std::move(servers[at]), settings.servers[at]);
}

Fleet::Member::Member(const Fleet& fleet, Server server, const ServerSettings& settings)
    : fleet_(fleet), server_(std::move(server)), settings_(settings), random_(seed()) {}

bool Fleet::Member::begin_trial(base::TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  const bool mine = condition_.begin_trial(fleet_.settings_.ejection, now);
  publish(Condition::Change::None, now, {});
  return mine;
}

std::uint32_t Fleet::Member::weight(base::TimePoint now) const noexcept {
  const base::TimePoint back_since{base::Duration{back_since_.load(std::memory_order_relaxed)}};
  return weight_at(settings_.weight, fleet_.settings_.ejection.slow_start, back_since, now);
}

std::optional<net::TlsTarget> Fleet::Member::tls(SSL_SESSION* session) const noexcept {
  if (!settings_.tls) return std::nullopt;
  return net::TlsTarget{.context = fleet_.tls_.get(), .name = settings_.tls_name, .session = session};
}

void Fleet::Member::unreachable(base::TimePoint now, std::string_view fault) noexcept {
  const std::scoped_lock lock(mutex_);
  publish(condition_.unreachable(fleet_.settings_.ejection, now, next(random_)), now,
          fault.empty() ? "it cannot be reached" : fault);
}

void Fleet::Member::failed(base::TimePoint sent, base::TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  publish(condition_.failed(fleet_.settings_.ejection, sent, now, next(random_)), now, "its answers fail");
}

void Fleet::Member::note_answer(base::TimePoint sent, base::TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  publish(condition_.answered(sent, now), now, {});
}

void Fleet::Member::probed(bool good, std::string_view fault, base::TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  publish(condition_.probed(*fleet_.settings_.health, good, now), now, fault);
}

std::optional<base::Duration> Fleet::Member::enter(base::TimePoint now) noexcept {
  if (settings_.max_in_flight != 0 &&
      in_flight_.fetch_add(1, std::memory_order_relaxed) >= settings_.max_in_flight) {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    return kPerhaps;
  }
  if (!settings_.limit) return std::nullopt;
  const auto wait = spend(now);
  if (wait) leave();
  return wait;
}

std::optional<base::Duration> Fleet::Member::spend(base::TimePoint now) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto step = settings_.limit->step(spent_, now, 1);
  if (!step.outcome.allowed) return step.outcome.retry_after;
  spent_ = step.next;
  return std::nullopt;
}

void Fleet::Member::give_back_unit(base::TimePoint now) noexcept {
  if (!settings_.limit) return;
  const std::scoped_lock lock(mutex_);
  spent_ = limit::refund(*settings_.limit, spent_, now, 1);
}

void Fleet::pause_until(base::TimePoint at) noexcept {
  const auto until = at.time_since_epoch().count();
  auto now = paused_until_.load(std::memory_order_relaxed);
  while (now < until && !paused_until_.compare_exchange_weak(now, until, std::memory_order_relaxed)) {
  }
}

std::uint64_t Fleet::Member::ejections() const {
  const std::scoped_lock lock(mutex_);
  return condition_.ejections();
}

// REQUIRES mutex_, which also keeps the lines in order.
void Fleet::Member::publish(Condition::Change change, base::TimePoint now, std::string_view why) noexcept {
  out_until_.store(condition_.out_until().time_since_epoch().count(), std::memory_order_relaxed);
  back_since_.store(condition_.back_since().time_since_epoch().count(), std::memory_order_relaxed);
  suspect_.store(condition_.suspect(), std::memory_order_relaxed);
  if (change == Condition::Change::None || !fleet_.report_) return;
  try {
    auto line = "upstream \"" + fleet_.settings_.name + "\": server " + server_.name;
    if (change == Condition::Change::Out)
      line.append(" is out for ").append(seconds(condition_.out_until() - now)).append(": ").append(why);
    else if (change == Condition::Change::Down)
      line.append(" is down: ").append(why);
    else
      line += " is back";
    fleet_.report_(line);
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory, and a line less is the least of it
  }
}

}  // namespace weir::upstream
