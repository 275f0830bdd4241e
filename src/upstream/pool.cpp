#include "weir/upstream/pool.hpp"

#include "upstream/http2_server_connection.hpp"
#include "upstream/http2_server_stream.hpp"

#include "weir/net/dial.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <initializer_list>
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

bool leads_to(const net::Stream& stream, const Addresses& addresses) noexcept {
  const auto peer = net::remote_endpoint(stream.native_handle());
  return std::find(addresses.begin(), addresses.end(), peer) != addresses.end();
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

// Returns true if the peer of an idle connection closed it or sent unexpected bytes. The next request would
// read these bytes as its answer. The event loop has reported what happened before its current turn. If the
// request can be sent `once` only, looks at the socket, too, which costs a system call.
bool went_stale(const net::Stream& stream, bool once) noexcept {
  if (!stream.is_quiet()) return true;
  if (!once) return false;
  char byte = 0;
  const auto got = ::recv(stream.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

}  // namespace

bool is_shortage(const net::ErrorCode& ec) noexcept {
  for (const int shortage : {EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL, EAGAIN})
    if (ec.value() == shortage) return true;
  return false;
}

bool is_refusal(const net::ErrorCode& ec) noexcept {
  return ec.value() == EBUSY;
}

Lease::Lease() noexcept = default;

Lease::Lease(Pool& pool, std::size_t server) noexcept : pool_(&pool), server_(server) {}

Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      server_(other.server_),
      moves_(other.moves_),
      stream_(std::move(other.stream_)),
      http2_(std::move(other.http2_)),
      avoid_(other.avoid_),
      room_after_(other.room_after_),
      room_at_any_time_(other.room_at_any_time_),
      reused_(other.reused_),
      keep_(other.keep_) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::exchange(other.pool_, nullptr);
  server_ = other.server_;
  moves_ = other.moves_;
  stream_ = std::move(other.stream_);
  http2_ = std::move(other.http2_);
  avoid_ = other.avoid_;
  room_after_ = other.room_after_;
  room_at_any_time_ = other.room_at_any_time_;
  reused_ = other.reused_;
  keep_ = other.keep_;
  return *this;
}

Lease::~Lease() {
  release();
}

void Lease::release() noexcept {
  if (pool_ == nullptr) return;
  --pool_->loads_[server_].in_flight;
  member().leave();
  auto& idle = pool_->idle_[server_];
  auto* const opened = !connected() ? nullptr : http2_ ? &http2_->connection()->stream() : stream_.get();
  if (!reused_ && opened != nullptr && opened->is_tls()) pool_->sessions_[server_] = opened->session();
  if (keep_ && stream_ && connected() && idle.size() < pool_->settings().max_idle &&
      (!moved() || leads_to(*stream_, *member().location().addresses)))
    idle.push_back({std::move(stream_), pool_->now_});
  stream_.reset();
  http2_.reset();
  pool_ = nullptr;
}

bool Lease::connected() const noexcept {
  return http2_ ? http2_->connection()->is_open() : stream_ && stream_->is_open();
}

net::ByteStream& Lease::stream() noexcept {
  if (http2_) return *http2_;
  return *stream_;
}

const void* Lease::http2_connection() const noexcept {
  return http2_ ? http2_->connection().get() : nullptr;
}

bool Lease::was_reset() const noexcept {
  return http2_ && http2_->was_reset();
}

bool Lease::was_refused() const noexcept {
  return http2_ && http2_->was_refused();
}

const std::string& Lease::server_name() const noexcept {
  return member().name();
}

ServerGroup::Member& Lease::member() const noexcept {
  return pool_->server_group_.member(server_);
}

net::Task<net::ErrorCode> Lease::connect(std::string_view proxy_header, base::Duration patience,
                                         std::string& fault) {
  reused_ = false;
  stream_.reset();
  if (http2_ || pool_->may_speak_http2(server_)) {
    const auto ec = co_await connect_http2(fault);
    if (ec || http2_ || stream_) co_return ec;
  }
  co_return co_await connect_http1(proxy_header, patience, fault);
}

// Waits for a connection that other requests may wait for, too. If the server chooses HTTP/1.1, the first
// request gets the connection; the others get neither `http2_` nor `stream_`.
net::Task<net::ErrorCode> Lease::connect_http2(std::string& fault) {
  for (;;) {
    if (!http2_) http2_ = std::make_unique<Http2ServerStream>(pool_->add_http2(server_, avoid_));
    const auto connection = http2_->connection();
    const auto ec = co_await http2_->connected();
    fault = connection->fault();
    moves_ = connection->moves();
    if (ec || (connection->is_open() && connection->may_send())) co_return ec;
    if (connection->is_open() && connection->is_closed_to_requests())
      co_return net::ErrorCode(EBUSY, boost::system::system_category());
    http2_.reset();
    if (connection->is_open()) continue;  // the server's SETTINGS permit fewer requests than wait
    pool_->chose_http1_[server_] = true;
    stream_ = connection->take_http1();
    co_return ec;
  }
}

net::Task<net::ErrorCode> Lease::connect_http1(std::string_view proxy_header, base::Duration patience,
                                               std::string& fault) {
  const auto location = member().location();
  moves_ = location.moves;
  // This task holds a reference of its own, because another connection may replace the pool's session
  // meanwhile.
  const auto session = net::share(pool_->sessions_[server_].get());
  const net::Dial::Target target{*location.addresses, location.first, proxy_header,
                                 member().tls(session.get())};
  net::Dial dial(pool_->executor_, pool_->watchdog_, target, patience);
  const net::Dial::ScopedCancelTarget held(dial_, dial);
  const auto ec = co_await dial.connect();
  fault = std::move(dial.fault());
  stream_ = dial.take();
  member().begin_with(dial.next(), location);
  if (ec) pool_->chose_http1_[server_] = false;
  if (ec || !stream_->is_tls() || stream_->protocol() != "h2") co_return ec;
  pool_->chose_http1_[server_] = false;
  auto& connections = pool_->http2_[server_];
  auto connection = pool_->make_http2();
  http2_ = std::make_unique<Http2ServerStream>(connection);
  connections.push_back(connection);
  connection->adopt(std::move(stream_), location.moves);
  co_return co_await http2_->connected();
}

void Lease::cancel() noexcept {
  if (dial_ != nullptr) dial_->cancel();
  if (stream_) stream_->cancel();
  if (http2_) http2_->cancel();
}

Pool::Pool(net::Executor executor, net::Watchdog& watchdog, ServerGroup& server_group)
    : Watched(watchdog),
      executor_(executor),
      watchdog_(watchdog),
      server_group_(server_group),
      balancer_(server_group.settings().balance, identities(server_group)),
      loads_(server_group.size()),
      idle_(server_group.size()),
      http2_(server_group.size()),
      chose_http1_(server_group.size()),
      moves_(server_group.size()),
      sessions_(server_group.size()),
      random_((std::uint64_t{std::random_device{}()} << 32U) | 1U),
      retries_(server_group.settings().retry.budget) {
  assert(server_group.size() <= kMaxServers);
  for (auto& idle : idle_) idle.reserve(settings().max_idle);
  for (std::size_t at = 0; at < moves_.size(); ++at) moves_[at] = server_group.member(at).moves();
}

Pool::~Pool() {
  for (const auto& connections : http2_)
    for (const auto& connection : connections) connection->close();
}

// Returns the candidates: the untried servers that are in service, or all untried servers if none is in
// service.
Pool::Choice Pool::look(const LeaseRequest& wanted) noexcept {
  Choice choice;
  std::uint64_t untried = 0;
  // A request that has failed at one server must not try an ejected server. With `health`, only probes try
  // ejected servers.
  const bool may_try = wanted.tried == 0 && !settings().health;
  for (std::size_t at = 0; at < loads_.size(); ++at) {
    if ((wanted.tried & bit_of(at)) != 0) continue;
    const auto& member = server_group_.member(at);
    untried |= bit_of(at);
    if (member.serves())
      choice.from |= bit_of(at);
    else if (may_try && member.due(wanted.now, wanted.once))
      choice.due |= bit_of(at);
    loads_[at].weight = member.weight(wanted.now);
  }
  if (choice.from == 0) choice = {untried, 0};  // an ejected server is better than no server
  return choice;
}

// Chooses an ejected server whose ejection time has passed, and begins a trial with this request. Under
// Balance::Hash, only requests whose word leads to the server try it.
std::optional<std::size_t> Pool::take_trial(const Choice& choice, const LeaseRequest& wanted) noexcept {
  auto due = choice.due;
  if (settings().balance == Balance::Hash)
    due &= bit_of(balancer_.choose(choice.from | choice.due, loads_, wanted.word));
  for (; due != 0; due &= due - 1) {
    const auto chosen = static_cast<std::size_t>(std::countr_zero(due));
    auto& member = server_group_.member(chosen);
    if (member.enter(wanted.now)) continue;
    if (member.begin_trial(wanted.now, wanted.owed)) return chosen;
    member.give_back_unit(wanted.now);  // another request has begun the trial
    member.leave();
  }
  return std::nullopt;
}

bool Pool::others_serve(std::uint64_t tried, base::TimePoint now) const noexcept {
  for (std::size_t at = 0; at < loads_.size(); ++at)
    if ((tried & bit_of(at)) == 0 && server_group_.member(at).serves() &&
        server_group_.member(at).would_enter(now))
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

std::uint64_t Pool::word(const LeaseRequest& wanted) noexcept {
  return settings().balance == Balance::RandomTwo ? random() : wanted.word;
}

Lease Pool::lease(const LeaseRequest& wanted) {
  // A single server gets all requests, even while it is ejected.
  const auto choice = loads_.size() == 1 ? Choice{.from = ~wanted.tried & 1U} : look(wanted);
  if (choice.due != 0)
    if (const auto server = take_trial(choice, wanted)) return lend(*server, {.fresh = true});
  std::optional<base::Duration> room_after;
  bool room_at_any_time = false;
  for (auto from = choice.from; from != 0;) {
    const bool only_one = (from & (from - 1)) == 0;
    const auto chosen = only_one ? static_cast<std::size_t>(std::countr_zero(from))
                                 : balancer_.choose(from, loads_, word(wanted));
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

Lease Pool::lend(std::size_t server, const LeaseRequest& wanted) {
  ++loads_[server].in_flight;
  follow(server);
  Lease lease(*this, server);
  lease.avoid_ = wanted.avoid;
  lease.moves_ = moves_[server];
  if (may_speak_http2(server)) {
    if (auto connection = find_http2(server, wanted.avoid)) {
      lease.reused_ = connection->is_open();
      lease.moves_ = connection->moves();
      lease.http2_ = std::make_unique<Http2ServerStream>(std::move(connection));
      return lease;
    }
  }
  auto& idle = idle_[server];
  while (!wanted.fresh && !idle.empty() && !lease.stream_) {
    auto stream = std::move(idle.back().stream);
    idle.pop_back();
    if (went_stale(*stream, wanted.once)) continue;
    lease.stream_ = std::move(stream);
    lease.reused_ = true;
  }
  return lease;
}

bool Pool::may_speak_http2(std::size_t server) const noexcept {
  switch (settings().protocol) {
    case Protocol::Http1:
      return false;
    case Protocol::Auto:
      return !chose_http1_[server];
    case Protocol::H2:
    case Protocol::H2c:
      return true;
  }
  return false;
}

// Returns a connection with room for a request. Prefers the oldest, so that the others become unused and end.
std::shared_ptr<Http2ServerConnection> Pool::find_http2(std::size_t server, const void* avoid) noexcept {
  auto& connections = http2_[server];
  std::erase_if(connections, [](const auto& each) { return each->has_ended() || each->is_http1(); });
  const auto found = std::find_if(connections.begin(), connections.end(), [avoid](const auto& each) {
    return each.get() != avoid && each->has_room();
  });
  return found != connections.end() ? *found : nullptr;
}

std::shared_ptr<Http2ServerConnection> Pool::make_http2() {
  const auto& timeouts = settings().timeouts;
  return std::make_shared<Http2ServerConnection>(
      executor_, watchdog_,
      Http2ServerConnection::Settings{
          .max_streams = settings().max_streams, .connect = timeouts.connect, .idle = timeouts.idle});
}

// Returns a connection with room; starts one if there is none.
std::shared_ptr<Http2ServerConnection> Pool::add_http2(std::size_t server, const void* avoid) {
  if (auto connection = find_http2(server, avoid)) return connection;
  auto& member = server_group_.member(server);
  auto connection = make_http2();
  http2_[server].push_back(connection);
  connection->start({.member = member,
                     .location = member.location(),
                     .session = net::share(sessions_[server].get()),
                     .requires_http2 = settings().protocol != Protocol::Auto});
  return connection;
}

// Drops idle connections to addresses that the server's name no longer has.
void Pool::follow(std::size_t server) noexcept {
  const auto& member = server_group_.member(server);
  if (moves_[server] == member.moves()) return;
  const auto location = member.location();
  std::erase_if(idle_[server], [&](const Idle& one) { return !leads_to(*one.stream, *location.addresses); });
  for (const auto& connection : http2_[server])
    if (connection->is_open() && leads_to(connection->stream(), *location.addresses))
      connection->set_moves(location.moves);
    else
      connection->leave();
  moves_[server] = location.moves;
}

void Pool::on_tick() noexcept {
  ++now_;
  for (std::size_t at = 0; at < idle_.size(); ++at) follow(at);
  for (auto& connections : http2_) {
    std::size_t unused = 0;
    for (const auto& connection : connections) {
      connection->tick();
      if (connection->streams() == 0 && ++unused > settings().max_idle) connection->leave();
    }
    std::erase_if(connections, [](const auto& each) { return each->has_ended(); });
  }
  const auto longest = static_cast<std::uint64_t>(settings().timeouts.idle / net::Watchdog::kTick);
  for (auto& idle : idle_) {
    const auto fresh =
        std::find_if(idle.begin(), idle.end(), [&](const Idle& one) { return one.since + longest > now_; });
    idle.erase(idle.begin(), fresh);
  }
}

}  // namespace weir::upstream
