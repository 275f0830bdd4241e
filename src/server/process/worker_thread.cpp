#include "server/process/worker_thread.hpp"

#include "weir/net/reactor.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::server {

namespace {

constexpr std::chrono::milliseconds kDrainLook{10};
constexpr std::chrono::milliseconds kRedisLook{2};

std::unique_ptr<redis::Store> make_store(net::Executor executor, const WorkerParts& parts) {
  if (parts.redis == nullptr) return nullptr;
  auto say = [&log = parts.log](redis::LogLevel level, const std::string& line) {
    log.write(level == redis::LogLevel::Warning ? log::LogLevel::Warning : log::LogLevel::Info, line);
  };
  return std::make_unique<redis::Store>(executor, *parts.redis, std::move(say), redis::StoreTuning{},
                                        &parts.redis_refunds, parts.shared_grants);
}

}  // namespace

// Only the worker's thread runs the io_context, and other threads only post to it. So the sockets of the
// io_context need no locks.
WorkerThread::WorkerThread(const WorkerParts& parts)
    : context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      counters_(parts.shape),
      access_lines_(parts.access_log.is_on() ? std::make_unique<log::AccessLogLines>(
                                                   parts.access_log, context_.get_executor(), counters_)
                                             : nullptr),
      redis_(make_store(context_.get_executor(), parts)),
      worker_(context_.get_executor(), parts.shared, parts.config_snapshot, redis_.get(), counters_,
              access_lines_.get()),
      start_timer_(context_.get_executor()),
      start_wait_(parts.redis != nullptr ? parts.redis->start_wait : base::Duration{0}),
      waits_for_redis_(start_wait_.count() > 0),
      drain_timer_(context_.get_executor()),
      log_(parts.log) {
  // Creates the reactor, and with it Asio's epoll, before connections can use up the file descriptors.
  (void)net::Reactor::of(context_.get_executor());
  if (parts.top != 0) counters_.top = std::make_unique<observe::TopClients>(parts.top);
}

WorkerThread::~WorkerThread() {
  context_.stop();
  join();
  // Redis must be stopped first: a reply must not reach a session that no longer exists.
  if (redis_) redis_->stop();
  // Destroys the coroutines of sessions now, because they refer to the worker.
  net::Reactor::of(context_.get_executor()).end_tasks();
}

void WorkerThread::listen_on(std::size_t listener, net::ListeningSocket socket,
                             proxy::AcceptorSettings settings) {
  if (!thread_.joinable()) return add(listener, std::move(socket), std::move(settings));
  net::asio::post(context_, [this, listener, lent = std::make_unique<net::ListeningSocket>(std::move(socket)),
                             given = std::move(settings)]() mutable {
    try_to_add(listener, std::move(*lent), std::move(given));
  });
}

void WorkerThread::add(std::size_t listener, net::ListeningSocket socket, proxy::AcceptorSettings settings) {
  if (worker_.draining) return;
  const auto address = socket.address();
  try {
    auto acceptor = std::make_unique<proxy::Acceptor>(
        worker_, std::move(socket).into_acceptor(context_.get_executor()), std::move(settings),
        [&log = log_](const std::string& what) { log.warning(what); });
    if (opened_) acceptor->open();
    acceptors_.emplace(listener, std::move(acceptor));
  } catch (const std::exception& error) {
    throw std::runtime_error("listener " + address.to_string() +
                             ": a worker cannot accept connections: " + error.what());
  }
}

// Makes the worker accept connections on the socket. If this fails, logs and counts the failure. The other
// workers still accept connections on their own sockets.
void WorkerThread::try_to_add(std::size_t listener, net::ListeningSocket socket,
                              proxy::AcceptorSettings settings) {
  try {
    add(listener, std::move(socket), std::move(settings));
  } catch (const std::exception& error) {
    counters_.accept_failures.add();
    log_.error(error.what());
  }
}

void WorkerThread::start(bool opens) {
  may_open_ = opens;
  thread_ = std::thread([this] {
    worker_.watchdog.start();
    if (redis_) redis_->start();
    open_when_ready(std::chrono::steady_clock::now() + start_wait_);
    context_.run();
  });
}

// Accepts connections as soon as Redis is connected and the secret for clients' names is known, or once
// `latest` has passed. So the first requests can be decided in Redis. Meanwhile the kernel queues new
// connections.
void WorkerThread::open_when_ready(std::chrono::steady_clock::time_point latest) {
  const bool asks = redis_ && redis_->state() == redis::StoreState::Up && worker_.config().names_agreed;
  const bool waits = redis_ && !asks && !worker_.draining;
  if (waits && std::chrono::steady_clock::now() < latest) {
    start_timer_.expires_after(kRedisLook);
    start_timer_.async_wait([this, latest](const net::ErrorCode&) { open_when_ready(latest); });
    return;
  }
  waits_for_redis_ = false;
  open_if_allowed();
}

void WorkerThread::open_if_allowed() {
  if (worker_.draining || opened_ || !may_open_ || waits_for_redis_) return;
  for (const auto& [listener, acceptor] : acceptors_) acceptor->open();
  opened_ = true;
}

void WorkerThread::open() {
  net::asio::post(context_, [this] {
    may_open_ = true;
    open_if_allowed();
  });
}

void WorkerThread::pause(std::function<void()> done) {
  net::asio::post(context_, [this, done = std::move(done)] {
    worker_.paused_at = worker_.clock.now();
    worker_.decision_pause.begin();
    for (const auto& [listener, acceptor] : acceptors_) acceptor->hold();
    done();
  });
}

void WorkerThread::resume() {
  net::asio::post(context_, [this] {
    for (const auto& [listener, acceptor] : acceptors_) acceptor->resume();
    worker_.decision_pause.end();
  });
}

void WorkerThread::adopt(std::size_t listener, upgrade::ReceivedConnection arrived) {
  net::asio::post(
      context_, [this, listener, taken = std::make_unique<upgrade::ReceivedConnection>(std::move(arrived))] {
        const auto found = acceptors_.find(listener);
        try {
          if (found == acceptors_.end()) throw std::runtime_error("weir no longer listens on its address");
          found->second->adopt(taken->socket.release(), taken->connection_info, taken->unread);
        } catch (const std::exception& error) {
          log_.warning(std::string("upgrade: a connection was dropped: ") + error.what());
        }
      });
}

void WorkerThread::retire(proxy::ConnectionHandoff& handoff) {
  net::asio::post(context_, [this, &handoff] {
    worker_.retiring = true;
    worker_.handoff = &handoff;
    begin_drain();
    worker_.decision_pause.end();
  });
}

void WorkerThread::renew(std::size_t listener, proxy::AcceptorSettings settings) {
  net::asio::post(context_, [this, listener, fresh = std::move(settings)] {
    const auto [first, last] = acceptors_.equal_range(listener);
    for (auto found = first; found != last; ++found)
      found->second->renew({net::share(fresh.tls.get()), fresh.proxy_protocol, fresh.listener, fresh.name,
                            fresh.most_sessions, fresh.http2, fresh.ask});
  });
}

void WorkerThread::leave(std::size_t listener) {
  net::asio::post(context_, [this, listener] {
    forget_drained();
    const auto [first, last] = acceptors_.equal_range(listener);
    for (auto found = first; found != last; ++found) {
      found->second->close();
      left_.push_back(std::move(found->second));
    }
    acceptors_.erase(first, last);
  });
}

void WorkerThread::forget_drained() {
  std::erase_if(left_, [](const auto& acceptor) { return acceptor->is_drained(); });
}

void WorkerThread::begin(std::shared_ptr<const proxy::ConfigSnapshot> config_snapshot) {
  net::asio::post(context_, [this, fresh = std::move(config_snapshot)] {
    try {
      worker_.begin(fresh);
    } catch (const std::bad_alloc&) {
      log_.error("reload: out of memory; one worker keeps the previous configuration");
    }
  });
}

void WorkerThread::wake_token_key_waiters() {
  net::asio::post(context_, [this] { worker_.token_key_waiters.notify(); });
}

void WorkerThread::announce_stop() {
  net::asio::post(context_, [this] { worker_.stopping = true; });
}

void WorkerThread::drain() {
  net::asio::post(context_, [this] { begin_drain(); });
}

void WorkerThread::stop() {
  net::asio::post(context_, [this] {
    begin_drain();
    worker_.hard_stop = true;
  });
}

void WorkerThread::run_redis_job(std::shared_ptr<RedisJob> job, std::function<void()> done) {
  net::asio::post(context_, [this, job = std::move(job), done = std::move(done)]() mutable {
    net::spawn(context_.get_executor(), run_job(*redis_, std::move(job)),
               [done = std::move(done)](const std::exception_ptr&) { done(); });
  });
}

void WorkerThread::begin_drain() {
  if (worker_.draining) return;
  worker_.draining = true;
  worker_.watchdog.wake_all();
  for (const auto& [listener, acceptor] : acceptors_) acceptor->close();
  end_when_empty();
}

// Returns true if no connection is left. A closed acceptor may have accepted a client whose session has not
// begun. A drain waits for this client; a hard stop does not.
bool WorkerThread::is_empty() {
  forget_drained();
  const bool deserted = std::all_of(acceptors_.begin(), acceptors_.end(),
                                    [](const auto& acceptor) { return acceptor.second->is_drained(); });
  return worker_.sessions == 0 && (worker_.hard_stop || (deserted && left_.empty()));
}

void WorkerThread::end_when_empty() {
  if (is_empty() && (!redis_ || redis_->finish())) return end();
  drain_timer_.expires_after(kDrainLook);
  drain_timer_.async_wait([this](const net::ErrorCode&) { end_when_empty(); });
}

void WorkerThread::end() {
  worker_.watchdog.stop();
  if (redis_) redis_->stop();
  if (access_lines_) access_lines_->flush();
  context_.stop();
}

void WorkerThread::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace weir::server
