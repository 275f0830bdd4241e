#include "weir/upstream/pool.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>
#include <utility>

namespace weir::upstream {

namespace {

// How long a server that refused a connection is passed over while others are there.
constexpr std::uint64_t kAsideTicks = 1'000'000 / net::Watchdog::kTick.count();
constexpr std::size_t kNone = ~std::size_t{0};

}  // namespace

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

Lease::~Lease() { release(); }

void Lease::release() noexcept {
  if (pool_ == nullptr) return;
  auto& slot = pool_->slots_[server_];
  --slot.in_flight;
  if (keep_ && connected() && slot.idle.size() < pool_->settings_.max_idle)
    slot.idle.push_back({std::move(stream_), pool_->now_});
  stream_.reset();
  pool_ = nullptr;
}

const std::string& Lease::server_name() const noexcept { return pool_->slots_[server_].server->name; }

net::Awaitable<net::ErrorCode> Lease::connect() {
  reused_ = false;
  net::ErrorCode ec = net::asio::error::host_unreachable;
  for (const auto& address : pool_->slots_[server_].server->addresses) {
    net::Socket socket(pool_->executor_);
    socket.open(address.protocol(), ec);
    if (ec) continue;  // out of descriptors, or a family that this host lacks
    if (address.protocol().family() != AF_UNIX) {
      const int on = 1;
      ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    stream_ = std::make_unique<net::Stream>(std::move(socket));
    co_await stream_->socket().async_connect(address, net::into(ec));
    if (!ec) co_return ec;
    stream_.reset();
    if (ec == net::asio::error::operation_aborted) break;
  }
  pool_->slots_[server_].aside_until = pool_->now_ + kAsideTicks;
  co_return ec;
}

bool Lease::went_stale() noexcept {
  char byte = 0;
  const auto got = ::recv(stream_->socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void Lease::cancel() noexcept {
  if (stream_) stream_->cancel();
}

Pool::Pool(net::Executor executor, net::Watchdog& watchdog, const UpstreamSettings& settings,
           const std::vector<Server>& servers)
    : Watched(watchdog), executor_(executor), settings_(settings), random_(std::random_device{}() | 1U) {
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

std::size_t Pool::choose(std::uint64_t tried) noexcept {
  const auto count = slots_.size();
  const auto pick = [&](auto usable) {
    const auto start = settings_.balance == Balance::RandomTwo ? random() % count : turn_++ % count;
    std::size_t best = kNone;
    std::size_t seen = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = (start + i) % count;
      if (!usable(at)) continue;
      if (best == kNone || slots_[at].in_flight < slots_[best].in_flight) best = at;
      ++seen;
      if (settings_.balance == Balance::RoundRobin) break;
      if (settings_.balance == Balance::RandomTwo && seen == 2) break;
    }
    return best;
  };
  const auto untried = [&](std::size_t at) { return (tried >> at & 1U) == 0; };
  const auto best = pick([&](std::size_t at) { return untried(at) && slots_[at].aside_until <= now_; });
  return best != kNone ? best : pick(untried);
}

Lease Pool::lease(std::uint64_t tried, bool fresh) {
  const auto chosen = slots_.size() == 1 ? (tried == 0 ? 0 : kNone) : choose(tried);
  if (chosen == kNone) return {};
  auto& slot = slots_[chosen];
  ++slot.in_flight;
  Lease lease(*this, chosen);
  if (!fresh && !slot.idle.empty()) {
    lease.stream_ = std::move(slot.idle.back().stream);
    lease.reused_ = true;
    slot.idle.pop_back();
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
