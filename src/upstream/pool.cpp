#include "weir/upstream/pool.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <initializer_list>
#include <limits>
#include <random>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace weir::upstream {

namespace {

// How long a server that refused a connection is passed over while others are there.
constexpr std::uint64_t kAsideTicks = 1'000'000 / net::Watchdog::kTick.count();
constexpr std::size_t kNone = ~std::size_t{0};
static_assert(kMaxServers <= std::numeric_limits<std::uint64_t>::digits, "a bit for each");

}  // namespace

bool is_shortage(const net::ErrorCode& ec) noexcept {
  for (const int shortage : {EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL})
    if (ec.value() == shortage) return true;
  return false;
}

base::Result<std::vector<Server>> resolve_servers(const UpstreamSettings& settings) {
  std::vector<Server> servers;
  for (const auto& address : settings.servers) {
    auto found = net::resolve(address);
    if (!found) return base::Error{"upstream \"" + settings.name + "\": " + found.error().message};
    servers.push_back({address.to_string(), std::move(*found)});
  }
  return servers;
}

Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      server_(other.server_),
      stream_(std::move(other.stream_)),
      reused_(other.reused_),
      keep_(other.keep_) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::exchange(other.pool_, nullptr);
  server_ = other.server_;
  stream_ = std::move(other.stream_);
  reused_ = other.reused_;
  keep_ = other.keep_;
  return *this;
}

Lease::~Lease() {
  release();
}

void Lease::release() noexcept {
  if (pool_ == nullptr) return;
  auto& slot = pool_->slots_[server_];
  --slot.in_flight;
  if (keep_ && connected() && slot.idle.size() < pool_->settings_.max_idle)
    slot.idle.push_back({std::move(stream_), pool_->now_});
  stream_.reset();
  pool_ = nullptr;
}

const std::string& Lease::server_name() const noexcept {
  return pool_->slots_[server_].server->name;
}

net::Task<net::ErrorCode> Lease::connect() {
  reused_ = false;
  net::ErrorCode ec = net::asio::error::host_unreachable;
  for (const auto& address : pool_->slots_[server_].server->addresses) {
    const auto family = address.protocol().family();
    const int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {  // out of descriptors, or a family that this host lacks
      ec = net::ErrorCode(errno, boost::system::system_category());
      continue;
    }
    if (family != AF_UNIX) {
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    stream_ = std::make_unique<net::Stream>(pool_->executor_, fd);
    ec = co_await stream_->connect(address.data(), address.size());
    if (!ec) co_return ec;
    stream_.reset();
    if (ec == net::asio::error::operation_aborted) break;
  }
  if (ec != net::asio::error::operation_aborted && !is_shortage(ec)) put_aside();
  co_return ec;
}

void Lease::put_aside() noexcept {
  pool_->slots_[server_].aside_until = pool_->now_ + kAsideTicks;
}

bool Lease::went_stale() noexcept {
  char byte = 0;
  const auto got = ::recv(stream_->native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void Lease::cancel() noexcept {
  if (stream_) stream_->cancel();
}

Pool::Pool(net::Executor executor, net::Watchdog& watchdog, const UpstreamSettings& settings,
           const std::vector<Server>& servers)
    : Watched(watchdog), executor_(executor), settings_(settings), random_(std::random_device{}() | 1U) {
  assert(servers.size() <= kMaxServers);
  for (const auto& server : servers) {
    slots_.push_back({&server, {}, 0, 0});
    slots_.back().idle.reserve(settings.max_idle);
  }
}

// xorshift64*: where to begin looking needs no better.
std::uint64_t Pool::random() noexcept {
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return random_ * 0x2545F4914F6CDD1DULL;
}

// The least busy in `candidates` (a bit for each server, at least one); among equals the next in turn.
std::size_t Pool::least_in_flight(std::uint64_t candidates) const noexcept {
  const auto count = slots_.size();
  auto best = kNone;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = (turn_ + i) % count;
    if ((candidates >> at & 1U) == 0) continue;
    if (best == kNone || slots_[at].in_flight < slots_[best].in_flight) best = at;
  }
  return best;
}

// One of `candidates` at random, each as likely.
std::size_t Pool::any_of(std::uint64_t candidates) noexcept {
  for (auto skip = random() % static_cast<std::uint64_t>(std::popcount(candidates)); skip > 0; --skip)
    candidates &= candidates - 1;
  return static_cast<std::size_t>(std::countr_zero(candidates));
}

std::size_t Pool::choose(std::uint64_t candidates) noexcept {
  switch (settings_.balance) {
    case Balance::RoundRobin: {
      const auto later = candidates & ~std::uint64_t{0} << turn_;
      return static_cast<std::size_t>(std::countr_zero(later != 0 ? later : candidates));
    }
    case Balance::RandomTwo: {
      const auto one = any_of(candidates);
      const auto others = candidates & ~(std::uint64_t{1} << one);
      if (others == 0) return one;
      const auto other = any_of(others);
      return slots_[other].in_flight < slots_[one].in_flight ? other : one;
    }
    case Balance::LeastInFlight:
      break;
  }
  return least_in_flight(candidates);
}

// The servers to choose from: those that did not just fail or, where all did, any that was not tried.
std::uint64_t Pool::candidates(std::uint64_t tried) const noexcept {
  std::uint64_t untried = 0;
  std::uint64_t healthy = 0;
  for (std::size_t at = 0; at < slots_.size(); ++at) {
    const auto bit = std::uint64_t{1} << at & ~tried;
    untried |= bit;
    if (slots_[at].aside_until <= now_) healthy |= bit;
  }
  return healthy != 0 ? healthy : untried;
}

Lease Pool::lease(std::uint64_t tried, bool fresh) {
  const auto from = candidates(tried);
  if (from == 0) return {};
  const auto chosen = choose(from);
  turn_ = (chosen + 1) % slots_.size();
  auto& slot = slots_[chosen];
  ++slot.in_flight;
  Lease lease(*this, chosen);
  while (!fresh && !slot.idle.empty() && !lease.stream_) {
    auto stream = std::move(slot.idle.back().stream);
    slot.idle.pop_back();
    // One that was closed meanwhile is of no use; bytes that nobody asked for would be taken for the next
    // answer.
    if (!stream->is_quiet()) continue;
    lease.stream_ = std::move(stream);
    lease.reused_ = true;
  }
  return lease;
}

void Pool::on_tick() noexcept {
  ++now_;
  const auto longest = static_cast<std::uint64_t>(settings_.timeouts.idle / net::Watchdog::kTick);
  for (auto& slot : slots_) {
    const auto fresh = std::find_if(slot.idle.begin(), slot.idle.end(),
                                    [&](const Idle& idle) { return idle.since + longest > now_; });
    slot.idle.erase(slot.idle.begin(), fresh);
  }
}

}  // namespace weir::upstream
