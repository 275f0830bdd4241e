// The life of a session's connection: it connects, signs in, serves, fails and connects again.
#include "redis/connection/session.hpp"

#include "redis/cluster/cluster.hpp"
#include "redis/connection/classify.hpp"
#include "redis/connection/log_coroutine_end.hpp"
#include "redis/connection/setup_commands.hpp"

#include "weir/base/units.hpp"
#include "weir/net/reactor.hpp"
#include "weir/net/use_task.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

namespace weir::redis {

namespace {

namespace asio = net::asio;

std::shared_ptr<TlsClient> tls_of(const RedisSettings& settings) {
  return settings.tls ? std::make_shared<TlsClient>(*settings.tls) : nullptr;
}

// Returns the longest time to connect, sign in and load the scripts: the larger of tuning.open_timeout and
// min(8 × settings.timeout, 2 s).
base::Duration time_to_open(const RedisSettings& settings, const StoreTuning& tuning) noexcept {
  constexpr base::Duration kMost = std::chrono::seconds(2);
  return std::max(tuning.open_timeout, std::min(8 * settings.timeout, kMost));
}

}  // namespace

Store::Session::Session(net::Executor executor, const RedisSettings& settings, StoreLog log,
                        const StoreTuning& tuning, LastRefunds* refunds, Common* common)
    : executor_(executor),
      settings_(settings),
      log_(std::move(log)),
      tuning_(tuning),
      common_(common),
      stats_(common != nullptr ? common->stats : own_stats_),
      tls_(tls_of(settings)),
      wire_(executor, tls_),
      pause_timer_(executor),
      refunds_(refunds != nullptr ? *refunds : own_refunds_),
      own_denied_(common != nullptr ? nullptr : std::make_unique<DenyCache>(refunds_)),
      denied_(common != nullptr ? common->denied : *own_denied_),
      pipeline_(tuning.max_pending, patience_of(settings), settings.timeout),
      deadline_timer_(executor),
      own_permit_renewer_(common != nullptr
                              ? nullptr
                              : std::make_shared<PermitRenewer>(executor, settings.lease_time,
                                                                static_cast<RefundSink&>(*this), stats_)),
      permit_renewer_(common != nullptr ? common->permit_renewer : *own_permit_renewer_) {
  if (settings_.topology == Topology::Sentinel) {
    // The time of one attempt to connect must suffice to ask all Sentinels and to reach the master.
    const auto patience =
        time_to_open(settings_, tuning) / (static_cast<int>(settings_.sentinel.addresses.size()) + 1);
    const auto tls = settings_.sentinel.tls ? tls_ : nullptr;
    sentinels_ = std::make_shared<Sentinels>(executor, settings_.sentinel, patience, tls);
  } else {
    address_ = settings_.address;
  }
  learn_server_time(std::chrono::time_point_cast<base::Duration>(std::chrono::system_clock::now()));
}

void Store::Session::start() {
  if (stopped_) return;
  net::spawn(executor_, run(shared_from_this()), LogCoroutineEnd{log_, "the connection's"});
  if (!sentinels_) return;
  const auto moved = [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->reconnect();
  };
  sentinels_->follow(moved, LogCoroutineEnd{log_, "the Sentinels'"});
}

void Store::Session::stop() {
  if (std::exchange(stopped_, true)) return;
  if (own_permit_renewer_) own_permit_renewer_->give_up();
  flush();  // sends the last refunds and settlements
  state_.store(StoreState::Down, std::memory_order_relaxed);
  refusal_ = StoreError::Stopped;
  opening_ = 0;
  hang_up();
  if (sentinels_) sentinels_->stop();
  pause_timer_.cancel();
  deadline_timer_.cancel();
  // Resumes the waiting coroutines later, from the event loop, because one of them may own the session that
  // is being destroyed.
  asio::post(executor_, [waiting = fail_all(StoreError::Stopped)]() mutable {
    for (const auto caller : waiting) caller.resume();
  });
}

net::Task<void> Store::Session::run(std::shared_ptr<Session> self) {
  Session& session = *self;
  while (!session.stopped_) {
    net::ErrorCode ec = asio::error::no_memory;
    try {
      ec = co_await session.run_until_closed();
    } catch (const std::bad_alloc&) {  // ends the connection; the next attempt follows
    }
    if (session.stopped_) break;
    session.enter_down(ec);
    co_await session.pause();
  }
}

net::Task<net::ErrorCode> Store::Session::run_until_closed() {
  net::ErrorCode ec = co_await open();
  if (!ec && !stopped_) {
    enter_up();
    ec = co_await serve();
  }
  co_return ec;
}

net::Task<net::ErrorCode> Store::Session::open() {
  state_.store(StoreState::Probing, std::memory_order_relaxed);
  opening_ = ++openings_;
  bound_opening(time_to_open(settings_, tuning_));
  reader_.reset();
  net::ErrorCode ec = co_await reach();
  if (!ec) ec = co_await sign_in();
  const bool signed_in = !ec && opening_ != 0;
  if (signed_in) ec = co_await try_a_charge();
  if (opening_ == 0) {
    ec = StoreError::Timeout;
    last_error_ = signed_in ? "no reply to a test charge within " + base::to_string(settings_.timeout)
                  : wire_.is_shaking() ? "no reply to the TLS handshake; is it a port without TLS?"
                                       : "no reply to the connection attempt";
  }
  opening_ = 0;
  pause_timer_.cancel();
  if (sentinels_ && ec) sentinels_->doubt_master();
  if (sentinels_ && !ec) sentinels_->confirm_master();
  co_return ec;
}

// Sets the timer that ends the current attempt to connect after the time `length`.
void Store::Session::bound_opening(base::Duration length) {
  pause_timer_.expires_after(length);
  pause_timer_.async_wait([self = shared_from_this(), attempt = opening_](net::ErrorCode ec) {
    if (!ec && self->opening_ == attempt) self->give_up_opening();
  });
}

void Store::Session::give_up_opening() {
  opening_ = 0;
  if (sentinels_) sentinels_->cancel();
  hang_up();
}

// Determines the address of the server (a Sentinel may have to report it), and connects to the server.
net::Task<net::ErrorCode> Store::Session::reach() {
  net::ErrorCode ec;
  if (sentinels_) ec = co_await sentinels_->locate(address_);
  if (ec) last_error_ = sentinels_->why();
  if (ec || opening_ == 0) co_return ec;
  ec = co_await wire_.open(address_, time_to_open(settings_, tuning_));
  if (ec) last_error_ = wire_.why();
  co_return ec;
}

net::Task<net::ErrorCode> Store::Session::sign_in() {
  const SetupCommands setup = greet(settings_);
  net::ErrorCode ec = co_await send_greeting(setup.bytes);
  if (ec) co_return ec;
  for (const Step step : setup.steps) {
    ec = co_await read_reply();
    if (ec) co_return ec;
    const Reply& reply = reader_.reply();
    const bool forgiven = (step == Step::May || step == Step::Role) && !rejects_all_commands(reply.text);
    if (reply.kind == Reply::Kind::Error && !forgiven) {
      last_error_ = advised(reply.text);
      co_return classify(reply.text);
    }
    if (step == Step::Role && is_no_master(reply)) {
      last_error_ = "it is a " + readable(reply.words.front()) + ", not a master";
      co_return StoreError::ReadOnly;
    }
    if (step == Step::LoadCharge) charge_sha_ = reply.text;
    if (step == Step::LoadRefund) refund_sha_ = reply.text;
  }
  co_return ec;
}

net::Task<net::ErrorCode> Store::Session::send_greeting(std::string_view bytes) {
  const net::ErrorCode ec = co_await wire_.write(bytes);
  if (!ec) co_return ec;
  const std::string why = wire_.why();
  // A server that rejects the connection may send the reason before it closes the connection. Reads the
  // reason.
  const net::ErrorCode read_error = co_await read_reply();
  last_error_ = read_error ? why : readable(reader_.reply().text);
  const bool is_rejected = !read_error && classify(reader_.reply().text) == StoreError::NotAllowed;
  co_return is_rejected ? StoreError::NotAllowed : StoreError::ConnectionLost;
}

// Charges a test key. A charge is a write, so a success shows that the server accepts writes: it is not a
// replica, not out of memory, and not write-protected. PING would not show this. In a cluster, a redirection
// to another node is accepted as success.
net::Task<net::ErrorCode> Store::Session::try_a_charge() {
  const limit::Limiter roomy =
      limit::TokenBucket::make({1'000'000, std::chrono::seconds(1)}, 1'000'000).value();
  const limit::SlotHash slot_hash =
      common_ != nullptr ? common_->cluster.slot_hash_at(*this) : limit::SlotHash{0};
  const limit::Charge charge{limit::with_slot_hash({}, slot_hash), &roomy};
  const BillRequest demand{{&charge, 1}};
  const std::string prefix = settings_.prefix + ":probe";
  const CallNumber number = permit_renewer_.next_number();
  std::string command;
  append_charge(command, charge_sha_, {prefix, common_ != nullptr}, {&demand, 1}, {}, number);
  bound_opening(settings_.timeout);
  const auto asked = std::chrono::steady_clock::now();
  net::ErrorCode ec = co_await send_greeting(command);
  if (!ec) ec = co_await read_reply();
  if (ec) co_return ec;
  pipeline_.note_trip(std::chrono::steady_clock::now() - asked);
  const Reply& reply = reader_.reply();
  if (reply.kind == Reply::Kind::Error) {
    if (common_ != nullptr && redirection_in(reply.text, address_)) co_return ec;
    last_error_ = advised(reply.text);
    co_return classify(reply.text);
  }
  limit::Outcome outcome;
  base::TimePoint now;
  if (is_answer_to(number, reply) &&
      read_outcomes(reply, {&charge, 1}, {&outcome, 1}, now) == ReplyReading::Answer)
    co_return ec;
  last_error_ = "an unexpected reply to a script";
  co_return StoreError::BadReply;
}

net::Task<net::ErrorCode> Store::Session::read_reply() {
  for (;;) {
    const auto next = reader_.next();
    if (next == ReplyReader::Next::Ready) co_return net::ErrorCode();
    if (next == ReplyReader::Next::Malformed) {
      last_error_ = "the peer does not speak the Redis protocol";
      co_return StoreError::BadReply;
    }
    net::ErrorCode ec;
    const std::size_t n = co_await wire_.read_some(input_.data(), input_.size(), ec);
    if (ec) {
      last_error_ = wire_.why();
      co_return StoreError::ConnectionLost;
    }
    reader_.feed({input_.data(), n});
  }
}

// Handles replies until the connection ends. Returns the reason why the connection has ended.
net::Task<net::ErrorCode> Store::Session::serve() {
  for (;;) {
    // Bytes may have arrived together with the last reply to the greeting. Handles these bytes before the
    // first read. Otherwise they would be mistaken for the reply to a later command.
    if (!handle_replies()) co_return StoreError::BadReply;
    if (state() != StoreState::Up) co_return refusal_;
    net::ErrorCode ec;
    const std::size_t n = co_await wire_.read_some(input_.data(), input_.size(), ec);
    if (state() != StoreState::Up) co_return refusal_;
    if (ec) {
      if (ec != asio::error::operation_aborted)
        // If the error is operation_aborted, weir itself closed the connection and has set last_error_
        // already.
        last_error_ = wire_.why();
      co_return StoreError::ConnectionLost;
    }
    reader_.feed({input_.data(), n});
  }
}

void Store::Session::enter_up() {
  state_.store(StoreState::Up, std::memory_order_relaxed);
  refusal_ = StoreError::Away;
  failures_in_row_ = 0;
  flush_scheduled_ = blocked_ = loading_charge_ = loading_refund_ = false;
  wire_.keep_to_it();
  why_down_.set("");
  faults_.forget();
  if (common_ == nullptr || tried_ || stats_.connects.load(std::memory_order_relaxed) == 0)
    count(stats_.connects);
  tried_ = true;
  if (log_throttle_.settle() && log_) log_(LogLevel::Info, name() + " is up");
  if (common_ != nullptr) common_->cluster.changed(*this);
  if (own_permit_renewer_)
    own_permit_renewer_->renew();  // the concurrency permits may have expired, or Redis may have lost them
  if (!pipeline_.empty()) schedule_flush();
}

void Store::Session::enter_down(net::ErrorCode why) {
  state_.store(StoreState::Down, std::memory_order_relaxed);
  hang_up();
  why_down_.set(last_error_);
  const auto line = name() + " is down: " + why.message() + ", " + last_error_;
  if (log_throttle_.raise(line, std::chrono::steady_clock::now()) && log_) {
    const auto omitted = log_throttle_.omitted();
    log_(LogLevel::Warning, omitted == 0 ? line
                                         : line + "; it was down " + std::to_string(omitted) +
                                               " more times since the last such line");
  }
  denied_.forget_all();
  tried_ = true;
  if (common_ != nullptr) common_->cluster.changed(*this);
  auto waiting = fail_all(StoreError::ConnectionLost);
  for (const auto caller : waiting) caller.resume();
}

// Waits before the next attempt to connect. The pause is random, and its bound grows exponentially. So many
// weirs that lost the same Redis do not reconnect at the same time.
net::Task<void> Store::Session::pause() {
  const auto bound =
      std::min(tuning_.longest_backoff, tuning_.first_backoff * (1U << std::min(attempts_, 20U)));
  ++attempts_;
  std::uniform_int_distribution<std::int64_t> jitter(0, bound.count());
  pause_timer_.expires_after(base::Duration(jitter(random_)));
  net::ErrorCode ec;
  if (!stopped_) co_await pause_timer_.async_wait(net::use_task(ec));
}

// Returns the server's name for log lines: "redis cache:6379", or a name that mentions the cluster or the
// Sentinels' master.
std::string Store::Session::name() const {
  if (common_ != nullptr) return "redis " + address_.to_string() + " of the cluster";
  if (!sentinels_) return "redis " + address_.to_string();
  const std::string& master = settings_.sentinel.master;
  return "redis " + master + (address_.port != 0 ? " at " + address_.to_string() : "");
}

// Ends the connection, the attempt to connect or the pause immediately. Called if a Sentinel reports another
// master.
void Store::Session::reconnect() {
  if (stopped_) return;
  attempts_ = 0;
  if (state() == StoreState::Up) {
    last_error_ = "the Sentinels promoted another server to master";
    drop_connection(StoreError::Away);
  } else if (opening_ != 0) {
    give_up_opening();
  } else {
    pause_timer_.cancel();
  }
}

// Ends a connection that is up. All calls on it fail with `refusal`, and run() connects again. Any function
// of the session may call it.
void Store::Session::drop_connection(StoreError refusal) noexcept {
  refusal_ = refusal;
  state_.store(StoreState::Down, std::memory_order_relaxed);
  hang_up();
}

void Store::Session::hang_up() noexcept {
  wire_.close();
}

}  // namespace weir::redis
