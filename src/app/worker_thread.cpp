#include "app/worker_thread.hpp"

#include "weir/net/reactor.hpp"

#include <utility>

#include <boost/asio/post.hpp>

namespace weir::app {

namespace {

constexpr std::chrono::milliseconds kDrainLook{10};
constexpr std::chrono::milliseconds kRedisLook{2};

std::unique_ptr<redis::Store> make_store(net::Executor executor, const WorkerParts& parts) {
  if (parts.redis == nullptr) return nullptr;
  auto say = [&log = parts.log](redis::LogLevel level, const std::string& line) {
    log.write(level == redis::LogLevel::Warning ? LogLevel::Warning : LogLevel::Info, line);
  };
  return std::make_unique<redis::Store>(executor, *parts.redis, std::move(say), redis::StoreTuning{},
                                        &parts.redis_refunds, parts.redis_units);
}

observe::Counters::Shape shape_of(const proxy::Configuration& config) {
  return {.routes = config.routes.size(), .rules = config.rules.size(), .upstreams = config.upstreams.size()};
}

}  // namespace

// One thread runs this context, and nothing but post() reaches it from outside: its I/O needs no locks.
WorkerThread::WorkerThread(const WorkerParts& parts)
    : context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      counters_(shape_of(parts.shared.config)),
      access_lines_(parts.access_log.is_on() ? std::make_unique<AccessLogLines>(
                                                   parts.access_log, context_.get_executor(), counters_)
                                             : nullptr),
      redis_(make_store(context_.get_executor(), parts)),
      worker_(context_.get_executor(), parts.shared, redis_.get(), counters_, access_lines_.get()),
      start_timer_(context_.get_executor()),
      start_wait_(parts.redis != nullptr ? parts.redis->start_wait : base::Duration{0}),
      waits_for_redis_(start_wait_.count() > 0),
      drain_timer_(context_.get_executor()),
      log_(parts.log),
      most_sessions_(parts.most_sessions) {
  if (parts.top != 0) counters_.top = std::make_unique<observe::TopClients>(parts.top);
}

WorkerThread::~WorkerThread() {
  context_.stop();
  join();
  if (redis_) redis_->stop();  // nothing may be told to a session's call once it has gone
  net::Reactor::of(context_.get_executor()).end_tasks();  // sessions, which refer to the worker
}

void WorkerThread::listen_on(net::ListeningSocket socket, net::TlsContext tls, bool proxy_protocol) {
  entrances_.push_back(std::make_unique<proxy::Entrance>(
      worker_, std::move(socket).into_acceptor(context_.get_executor()),
      proxy::EntranceSettings{std::move(tls), proxy_protocol, most_sessions_},
      [&log = log_](const std::string& what) { log.warning(what); }));
}

void WorkerThread::start() {
  thread_ = std::thread([this] {
    worker_.watchdog.start();
    if (redis_) redis_->start();
    open_when_ready(std::chrono::steady_clock::now() + start_wait_);
    context_.run();
  });
}

// The first requests should find their limits in Redis, not their fallbacks; but a Redis that is away delays
// the start by no more than its `start_wait`. Meanwhile the kernel holds what connects.
void WorkerThread::open_when_ready(std::chrono::steady_clock::time_point latest) {
  const bool waits = redis_ && redis_->state() != redis::StoreState::Up && !worker_.draining;
  if (waits && std::chrono::steady_clock::now() < latest) {
    start_timer_.expires_after(kRedisLook);
    start_timer_.async_wait([this, latest](const net::ErrorCode&) { open_when_ready(latest); });
    return;
  }
  if (worker_.draining) return;
  for (const auto& entrance : entrances_) entrance->open();
  waits_for_redis_ = false;
}

void WorkerThread::renew(std::size_t entrance, net::TlsContext tls) {
  net::asio::post(context_, [&renewed = *entrances_[entrance], fresh = std::move(tls)]() mutable {
    renewed.renew(std::move(fresh));
  });
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

void WorkerThread::begin_drain() {
  if (worker_.draining) return;
  worker_.draining = true;
  for (const auto& entrance : entrances_) entrance->close();
  end_when_empty();
}

void WorkerThread::end_when_empty() {
  if (worker_.sessions == 0 && !(redis_ && redis_->is_taking())) return end();
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

}  // namespace weir::app
