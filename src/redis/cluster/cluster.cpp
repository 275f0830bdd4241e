// The slot map of a cluster, and the sessions (connections) for its masters. The file cluster_bill.cpp sends
// the bills (the charges of requests).
#include "redis/cluster/cluster.hpp"

#include "redis/connection/classify.hpp"
#include "redis/connection/command.hpp"
#include "redis/connection/log_coroutine_end.hpp"
#include "redis/connection/setup_commands.hpp"
#include "redis/scripts/bill.hpp"

#include "weir/net/reactor.hpp"
#include "weir/net/use_task.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace weir::redis {

namespace {

using namespace std::chrono_literals;

// The longest wait for one node's map of slots. The wait is short, so that weir soon asks another node if one
// does not answer.
constexpr base::Duration kPatience = 300ms;
// The shortest pause between two requests for the map of slots. While a slot has no node or a session is not
// up, each pause is twice as long as the last, from 2 * kLeastPause up to kMostPause.
constexpr base::Duration kLeastPause = 50ms;
constexpr base::Duration kMostPause = 400ms;
// The pause that follows kLeastPause if every slot has a node and all sessions are up. read_slots() ends it
// early.
constexpr base::Duration kRefreshPause = 1h;

}  // namespace

Store::Cluster::Cluster(net::Executor executor, const RedisSettings& settings, StoreLog log,
                        const StoreTuning& tuning, LastRefunds* refunds)
    : executor_(executor),
      settings_(settings),
      log_(std::move(log)),
      tuning_(tuning),
      refunds_(refunds != nullptr ? *refunds : own_refunds_),
      denied_(refunds_),
      permit_renewer_(std::make_shared<PermitRenewer>(executor, settings.lease_time,
                                                      static_cast<RefundSink&>(*this), stats_)),
      common_{*this, stats_, denied_, *permit_renewer_},
      query_(executor, kPatience, settings.tls ? std::make_shared<TlsClient>(*settings.tls) : nullptr),
      timer_(executor) {}

void Store::Cluster::start() {
  net::spawn(executor_, watch(shared_from_this()), LogCoroutineEnd{log_, "the cluster's"});
}

void Store::Cluster::stop() {
  if (stopped_) return;
  permit_renewer_->give_up();
  stopped_ = true;
  state_.store(StoreState::Down, std::memory_order_relaxed);
  for (const auto& session : sessions_) session->stop();
  query_.close();
  timer_.cancel();
}

net::Task<void> Store::Cluster::watch(std::shared_ptr<Cluster> self) {
  Cluster& cluster = *self;
  base::Duration rest = kLeastPause;
  while (!cluster.stopped_) {
    cluster.is_map_outdated_ = false;
    try {
      co_await cluster.read_map();
    } catch (const std::bad_alloc&) {  // later attempts read the map again
      cluster.is_map_outdated_ = true;
    }
    const bool whole = cluster.is_whole();
    rest = whole ? kLeastPause : std::min(2 * rest, kMostPause);
    co_await cluster.pause(rest);
    if (!whole || cluster.is_map_outdated_ || cluster.stopped_) continue;
    cluster.in_refresh_pause_ = true;
    co_await cluster.pause(kRefreshPause);
    cluster.in_refresh_pause_ = false;
  }
}

// Waits for a random time between half of `length` and `length`, so that the workers of many weirs do not
// send requests at the same time.
net::Task<void> Store::Cluster::pause(base::Duration length) {
  std::uniform_int_distribution<std::int64_t> jitter(length.count() / 2, length.count());
  timer_.expires_after(base::Duration(jitter(random_)));
  net::ErrorCode ignored;
  if (!stopped_) co_await timer_.async_wait(net::use_task(ignored));
}

void Store::Cluster::read_slots() {
  is_map_outdated_ = true;
  if (in_refresh_pause_) timer_.cancel();
}

// Returns the nodes to ask for the map of slots, in order. Nodes to which a session is up come first. Each
// call begins with another node than the call before, because a node that is cut off from the cluster may
// have an old map.
std::vector<base::Endpoint> Store::Cluster::nodes_to_ask() const {
  std::vector<base::Endpoint> nodes;
  const auto add = [&](const base::Endpoint& node) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  };
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    const auto& session = *sessions_[(first_node_ + i) % sessions_.size()];
    if (session.state() == StoreState::Up) add(session.address());
  }
  for (const auto& seed : settings_.nodes) add(seed);
  for (const auto& session : sessions_) add(session->address());
  return nodes;
}

net::Task<void> Store::Cluster::read_map() {
  const auto nodes = nodes_to_ask();
  ++first_node_;
  std::string why;
  net::ErrorCode ec = StoreError::Away;
  for (std::size_t i = 0; i < nodes.size() && ec && !stopped_; ++i) ec = co_await ask(nodes[i], why);
  query_.close();
  if (stopped_) co_return;
  if (ec) last_error_ = why;
  report_state();
  if (!ec) {
    (void)log_throttle_.settle();
    co_return;
  }
  const auto line = "redis: no node of the cluster reports the slots: " + why;
  if (log_ && log_throttle_.raise(line, std::chrono::steady_clock::now())) log_(LogLevel::Warning, line);
}

net::Task<net::ErrorCode> Store::Cluster::ask(const base::Endpoint& node, std::string& why) {
  SetupCommands setup = sign_in(settings_);
  setup.add(Step::Must, {"CLUSTER", "NODES"});
  net::ErrorCode ec = co_await query_.open(node);
  if (!ec) ec = co_await query_.send(setup.bytes);
  for (std::size_t i = 0; i < setup.steps.size() && !ec; ++i) {
    ec = co_await query_.receive();
    if (ec || query_.reply().kind != Reply::Kind::Error) continue;
    why = node.to_string() + ": " + readable(query_.reply().text);
    co_return StoreError::NotAllowed;
  }
  if (ec) {
    why = node.to_string() + ": " + query_.why();
    co_return ec;
  }
  auto map = SlotMap::read(query_.reply().text, node);
  if (!map || map->served() == 0) {
    why = node.to_string() + " reports no node with slots";
    co_return StoreError::Away;
  }
  if (!stopped_) take(*std::move(map));
  co_return net::ErrorCode();
}

// Replaces the map of slots. The session of a node stays as long as the node is a master, even without slots,
// because a slot may be moving to it.
void Store::Cluster::take(SlotMap map) {
  // Allocates before it changes anything, because an allocation may throw.
  std::vector<std::shared_ptr<Session>> by_master(map.masters().size());
  map_ = std::move(map);
  by_master_ = std::move(by_master);
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const auto* master = map_->owner(static_cast<Slot>(slot));
    if (master == nullptr) continue;
    auto& session = by_master_[static_cast<std::size_t>(master - map_->masters().data())];
    if (!session) session = session_at(*master);
  }
  for (std::size_t i = sessions_.size(); i-- > 0;) {
    const auto session = sessions_[i];
    const auto masters = map_->masters();
    if (std::find(masters.begin(), masters.end(), session->address()) != masters.end()) continue;
    sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(i));
    retire_session(session);
  }
}

std::shared_ptr<Store::Session> Store::Cluster::session_at(const base::Endpoint& address) {
  const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                  [&](const auto& session) { return session->address() == address; });
  if (found != sessions_.end()) return *found;
  RedisSettings settings = settings_;
  settings.address = address;
  const auto session = std::make_shared<Session>(executor_, settings, log_, tuning_, &refunds_, &common_);
  // Reserves memory before start(), because push_back() must not throw once the session has started.
  sessions_.reserve(sessions_.size() + 1);
  session->start();
  sessions_.push_back(session);
  return session;
}

// Stops a session that is no longer in sessions_, after twice the store's timeout. By then the deadlines of
// all its calls have passed.
void Store::Cluster::retire_session(const std::shared_ptr<Session>& session) {
  auto timer = std::make_shared<net::Timer>(executor_, 2 * settings_.timeout);
  timer->async_wait([self = shared_from_this(), session, timer](net::ErrorCode) { session->stop(); });
}

Store::Session* Store::Cluster::owner(Slot slot) const noexcept {
  if (!map_) return nullptr;
  const auto* master = map_->owner(slot);
  return master == nullptr ? nullptr
                           : by_master_[static_cast<std::size_t>(master - map_->masters().data())].get();
}

// Returns the session of the node to which the redirection points. After the error MOVED, updates the map of
// slots.
Store::Session* Store::Cluster::follow(const Redirection& redirection) {
  const auto session = session_at(redirection.to);
  if (redirection.kind == Redirection::Kind::Ask || !map_) return session.get();
  // reserves before it changes anything, because reserve() may throw
  by_master_.reserve(map_->masters().size() + 1);
  map_->move(redirection.slot, redirection.to);
  by_master_.resize(map_->masters().size());
  by_master_[static_cast<std::size_t>(map_->owner(redirection.slot) - map_->masters().data())] = session;
  read_slots();
  return session.get();
}

limit::SlotHash Store::Cluster::slot_hash_at(const Session& session) const noexcept {
  for (unsigned i = 0; i <= 0xffff; ++i) {
    const auto slot_hash = static_cast<limit::SlotHash>(i);
    if (owner(slot_of(slot_hash)) == &session) return slot_hash;
  }
  return 0;
}

bool Store::Cluster::is_whole() const noexcept {
  return map_ && map_->served() == kSlots &&
         std::all_of(by_master_.begin(), by_master_.end(),
                     [](const auto& session) { return !session || session->state() == StoreState::Up; });
}

// Returns in words which node is not up, or how many slots have no node. REQUIRES: !is_whole().
std::string Store::Cluster::what_is_missing() const {
  if (!map_) return last_error_;
  for (const auto& session : by_master_) {
    if (session && session->state() != StoreState::Up)
      return session->address().to_string() + ": " +
             (session->last_error().empty() ? "connecting" : session->last_error());
  }
  return std::to_string(kSlots - map_->served()) + " slots have no master";
}

void Store::Cluster::report_state() {
  if (stopped_) return;
  const bool whole = is_whole();
  state_.store(whole ? StoreState::Up : StoreState::Down, std::memory_order_relaxed);
  why_down_.set(whole ? "" : what_is_missing());
}

void Store::Cluster::changed(const Session& session) {
  report_state();
  if (session.state() == StoreState::Up) {
    permit_renewer_->renew();  // the node may have lost its concurrency permits
  } else {
    last_error_ = session.address().to_string() + ": " + session.last_error();
    denied_.forget_all();
    read_slots();
  }
}

}  // namespace weir::redis
