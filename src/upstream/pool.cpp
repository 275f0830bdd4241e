#include "weir/upstream/pool.hpp"

#include "upstream/http2_connections.hpp"
#include "upstream/http2_server_stream.hpp"
#include "upstream/peer.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <string_view>
#include <utility>

#include <sys/socket.h>

namespace weir::upstream {

namespace {

static_assert(kMaxServers <= std::numeric_limits<std::uint64_t>::digits, "a bit for each");

constexpr std::uint64_t bit_of(std::size_t server) noexcept {
  return std::uint64_t{1} << server;
}

std::vector<std::uint64_t> identities(const ServerGroup& server_group) {
  std::vector<std::uint64_t> identities;
  std::map<std::string_view, std::size_t> seen;
  for (std::size_t at = 0; at < server_group.size(); ++at) {
    const std::string_view name = server_group.member(at).name();
    identities.push_back(Balancer::identity(name, seen[name]++));
  }
  return identities;
}

// Returns true if the peer of an idle connection closed it or sent unexpected bytes, which the next request
// would read as its answer. If `check` is true and the event loop has reported neither event, checks the
// socket with a system call.
bool went_stale(const net::Stream& stream, bool check) noexcept {
  if (!stream.is_quiet()) return true;
  if (!check) return false;
  char byte = 0;
  const auto got = ::recv(stream.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

}  // namespace

Pool::Pool(net::Executor executor, net::Watchdog& watchdog, ServerGroup& server_group)
    : Watched(watchdog),
      executor_(executor),
      reactor_(net::Reactor::of(executor)),
      watchdog_(watchdog),
      server_group_(server_group),
      balancer_(server_group.settings().balance, identities(server_group)),
      loads_(server_group.size()),
      idle_(server_group.size()),
      address_changes_(server_group.size()),
      sessions_(server_group.size()),
      random_((std::uint64_t{std::random_device{}()} << 32U) | 1U),
      retries_(server_group.settings().retry.budget) {
  assert(server_group.size() <= kMaxServers);
  http2_.reserve(server_group.size());
  for (std::size_t at = 0; at < address_changes_.size(); ++at) {
    auto& member = server_group.member(at);
    http2_.emplace_back(executor_, watchdog_, settings(), member);
    in_flight_.emplace_back(*member.control());
    address_changes_[at] = member.address_changes();
  }
}

Pool::~Pool() {
  for (auto& connections : http2_) connections.close();
}

// Returns the candidates. These are the untried servers of the first priority that has servers in service, or
// all untried servers if none is in service. Drained servers are no candidates.
Pool::Choice Pool::choose_idle(const LeaseRequest& wanted) noexcept {
  Choice choice;
  std::uint64_t untried = 0;
  // A request that has failed at one server must not try an ejected server. If the upstream has `health`,
  // only probes try ejected servers.
  const bool may_try = wanted.tried == 0 && !settings().health;
  for (std::size_t at = 0; at < loads_.size(); ++at) {
    const auto& member = server_group_.member(at);
    if ((wanted.tried & bit_of(at)) != 0 || member.control()->is_drained()) continue;
    untried |= bit_of(at);
    if (member.serves())
      choice.from |= bit_of(at);
    else if (may_try && member.due(wanted.now, wanted.once))
      choice.due |= bit_of(at);
    loads_[at].weight = member.weight(wanted.now);
  }
  // all servers are ejected, but an ejected server is better than none
  if (choice.from == 0) return {untried, 0};
  choice.due &= server_group_.preferred(choice.from | choice.due);
  choice.from = server_group_.preferred(choice.from);
  return choice;
}

// Chooses an ejected server whose ejection time has passed, and begins a trial with this request. Under
// Balance::Hash, a request tries the server only if the request's hash key selects that server.
std::optional<std::size_t> Pool::take_trial(const Choice& choice, const LeaseRequest& wanted) noexcept {
  auto due = choice.due;
  if (settings().balance == Balance::Hash)
    due &= bit_of(balancer_.choose(choice.from | choice.due, loads_, wanted.client_hash));
  for (; due != 0; due &= due - 1) {
    const auto chosen = static_cast<std::size_t>(std::countr_zero(due));
    auto& member = server_group_.member(chosen);
    if (member.enter(wanted.now)) continue;
    if (member.begin_trial(wanted.now, wanted.owed)) return chosen;
    // another request has begun the trial, so this request does not use the server
    member.give_back_unit(wanted.now);
    member.leave();
  }
  return std::nullopt;
}

bool Pool::others_serve(std::uint64_t tried, base::TimePoint now) const noexcept {
  for (std::size_t at = 0; at < loads_.size(); ++at)
    if (const auto& member = server_group_.member(at); (tried & bit_of(at)) == 0 && member.serves() &&
                                                       !member.control()->is_drained() &&
                                                       member.would_enter(now))
      return true;
  return false;
}

// Returns a random number by xorshift64*, which is good enough to choose servers.
std::uint64_t Pool::random() noexcept {
  random_ ^= random_ >> 12U;
  random_ ^= random_ << 25U;
  random_ ^= random_ >> 27U;
  return random_ * 0x2545F4914F6CDD1DULL;
}

std::uint64_t Pool::client_hash(const LeaseRequest& wanted) noexcept {
  return settings().balance == Balance::RandomTwo ? random() : wanted.client_hash;
}

Lease Pool::lease(const LeaseRequest& wanted) {
  // If the upstream has only one server, this server gets all requests even while it is ejected.
  const bool alone = loads_.size() == 1 && !server_group_.member(0).control()->is_drained();
  const auto choice = alone ? Choice{.from = ~wanted.tried & 1U} : choose_idle(wanted);
  if (choice.due != 0)
    if (const auto server = take_trial(choice, wanted)) return lend(*server, {.fresh = true});
  std::optional<base::Duration> room_after;
  bool room_at_any_time = false;
  for (auto from = choice.from; from != 0;) {
    const bool only_one = (from & (from - 1)) == 0;
    const auto chosen = only_one ? static_cast<std::size_t>(std::countr_zero(from))
                                 : balancer_.choose(from, loads_, client_hash(wanted));
    auto& member = server_group_.member(chosen);
    const auto wait = member.enter(wanted.now);
    if (!wait) return lend(chosen, wanted);
    if (!member.has_room()) room_at_any_time = true;
    room_after = std::min(*wait, room_after.value_or(*wait));
    from &= ~bit_of(chosen);
  }
  Lease none;
  none.room_after_ = room_after;
  none.room_at_any_time_ = room_at_any_time;
  return none;
}

// Makes room in the list of idle connections for the connection of one more request, so that a lease can
// return its connection without an allocation.
void Pool::reserve_idle(std::size_t server) {
  auto& idle = idle_[server];
  const auto most = std::min(settings().max_idle, idle.size() + loads_[server].in_flight + 1);
  if (idle.capacity() < most) idle.reserve(2 * most);
}

// Returns the most recently used idle connection. Prefers connections that were idle before the event loop
// last asked the kernel for events, because the loop has reported whether the server closed them. If there is
// no such connection, or if weir cannot send the request again (`once`), checks the connection's socket.
std::unique_ptr<net::Stream> Pool::take_idle(std::size_t server, bool once) noexcept {
  auto& idle = idle_[server];
  const auto polls = reactor_.polls();
  while (!idle.empty()) {
    auto end = idle.end();
    if (idle.back().polls == polls)
      end = std::partition_point(idle.begin(), end, [&](const Idle& one) { return one.polls < polls; });
    const bool known = end != idle.begin();
    const auto chosen = std::prev(known ? end : idle.end());
    auto stream = std::move(chosen->stream);
    idle.erase(chosen);
    if (!went_stale(*stream, once || !known)) return stream;
  }
  return nullptr;
}

Lease Pool::lend(std::size_t server, const LeaseRequest& wanted) {
  reserve_idle(server);
  ++loads_[server].in_flight;
  in_flight_[server].add();
  follow(server);
  Lease lease(*this, server);
  lease.avoid_ = wanted.avoid;
  lease.address_changes_ = address_changes_[server];
  if (http2_[server].may_be_used()) {
    if (auto connection = http2_[server].find(wanted.avoid)) {
      lease.reused_ = connection->is_open();
      lease.address_changes_ = connection->address_changes();
      lease.http2_ = std::make_unique<Http2ServerStream>(std::move(connection));
      return lease;
    }
  }
  if (!wanted.fresh) lease.stream_ = take_idle(server, wanted.once);
  lease.reused_ = lease.stream_ != nullptr;
  return lease;
}

std::size_t Pool::idle_connections() const noexcept {
  std::size_t count = 0;
  for (const auto& idle : idle_) count += idle.size();
  return count;
}

void Pool::drop_idle() noexcept {
  for (auto& idle : idle_) idle.clear();
}

// Drops idle connections to addresses that the server's name no longer has.
void Pool::follow(std::size_t server) noexcept {
  const auto& member = server_group_.member(server);
  if (address_changes_[server] == member.address_changes()) return;
  const auto location = member.location();
  std::erase_if(idle_[server], [&](const Idle& one) { return !leads_to(*one.stream, *location.addresses); });
  http2_[server].follow(location);
  address_changes_[server] = location.address_changes;
}

void Pool::on_tick() noexcept {
  ++now_;
  for (std::size_t at = 0; at < idle_.size(); ++at) follow(at);
  for (auto& connections : http2_) connections.tick();
  const auto longest = static_cast<std::uint64_t>(settings().timeouts.idle / net::Watchdog::kTick);
  for (auto& idle : idle_) {
    const auto fresh =
        std::find_if(idle.begin(), idle.end(), [&](const Idle& one) { return one.since + longest > now_; });
    idle.erase(idle.begin(), fresh);
  }
}

}  // namespace weir::upstream
