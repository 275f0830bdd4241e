#include "weir/redis/shared_secret.hpp"

#include "redis/cluster/cluster_slots.hpp"
#include "redis/connection/classify.hpp"
#include "redis/connection/command.hpp"
#include "redis/connection/log_coroutine_end.hpp"
#include "redis/connection/log_throttle.hpp"
#include "redis/connection/request_reply.hpp"
#include "redis/connection/sentinels.hpp"
#include "redis/connection/setup_commands.hpp"

#include "weir/base/hex.hpp"
#include "weir/net/reactor.hpp"
#include "weir/net/use_task.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <new>
#include <random>
#include <utility>
#include <vector>

namespace weir::redis {

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kPatience = 1s;  // longest wait for one reply
// The longest pause between two attempts to read the secret: kPeriod after the first success. Before it, the
// pause doubles each time, from 2 * kFirstPause up to kMostPause.
constexpr base::Duration kPeriod = 5s;
constexpr base::Duration kFirstPause = 50ms;
constexpr base::Duration kMostPause = 300ms;
constexpr int kMostRedirections = 5;

// The server to which the next command is sent.
struct Target {
  base::Endpoint address;
  bool asking = false;  // true: the slot is moving to this server, so ASKING must precede each command
};

}  // namespace

std::string secret_name(const RedisSettings& settings) {
  return settings.prefix + ":secret";
}

std::string in_hex(const base::SipKey& secret) {
  return base::in_hex(base::Digest128{secret.k1, secret.k0});
}

std::optional<base::SipKey> secret_in(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  if (text.size() != 2 * kDigits) return std::nullopt;
  if (text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  base::SipKey secret;
  const char* const middle = text.data() + kDigits;
  std::from_chars(text.data(), middle, secret.k0, 16);
  std::from_chars(middle, middle + kDigits, secret.k1, 16);
  return secret;
}

class SharedSecret::Agreement : public std::enable_shared_from_this<Agreement> {
 public:
  Agreement(net::Executor executor, const RedisSettings& settings, const base::SipKey& offered, StoreLog log,
            OnSecret agreed)
      : executor_(executor),
        settings_(settings),
        name_(secret_name(settings)),
        log_(std::move(log)),
        agreed_(std::move(agreed)),
        secret_(offered),
        tls_(settings.tls ? std::make_shared<TlsClient>(*settings.tls) : nullptr),
        redis_(executor, kPatience, tls_),
        pause_(executor) {
    if (settings.topology == Topology::Sentinel)
      sentinels_ = std::make_shared<Sentinels>(executor, settings_.sentinel, kPatience,
                                               settings.sentinel.tls ? tls_ : nullptr);
  }

  void start() {
    net::spawn(executor_, run(shared_from_this()), LogCoroutineEnd{log_, "the shared secret's"});
  }
  void stop() {
    stopped_ = true;
    agreed_ = {};
    if (sentinels_) sentinels_->stop();
    redis_.close();
    pause_.cancel();
  }

  [[nodiscard]] bool is_agreed() const noexcept { return is_agreed_; }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  // Reads the secret from Redis, and stores nothing there. Must not be called after start(), whose coroutine
  // uses the same connection.
  net::Task<SecretState> look_at(Target target);

 private:
  static net::Task<void> run(std::shared_ptr<Agreement> self);
  net::Task<void> rest(base::Duration length);
  net::Task<std::optional<base::SipKey>> ask_any_server();
  net::Task<std::optional<base::SipKey>> ask_at(Target target);
  net::Task<bool> meet(const base::Endpoint& address);
  net::Task<bool> run(const std::string& command, Target& target);
  void take(const base::SipKey& found);
  void complain();

  net::Executor executor_;
  const RedisSettings settings_;
  const std::string name_;
  const StoreLog log_;
  OnSecret agreed_;
  base::SipKey secret_;  // the agreed secret; before the agreement, the secret that this weir offers
  bool is_agreed_ = false;
  bool stopped_ = false;
  std::string why_;
  LogThrottle log_throttle_;
  std::shared_ptr<TlsClient> tls_;  // null: no TLS; shared with the connections
  // Null if no Sentinels are configured. Not shared here: only Sentinels::follow(), unused here, shares it.
  std::shared_ptr<Sentinels> sentinels_;
  RequestReply redis_;
  net::Timer pause_;
  std::mt19937 random_{std::random_device{}()};
};

net::Task<void> SharedSecret::Agreement::run(std::shared_ptr<Agreement> self) {
  Agreement& asking = *self;
  base::Duration pause = kFirstPause;
  while (!asking.stopped_) {
    std::optional<base::SipKey> found;
    try {
      found = co_await asking.ask_any_server();
      asking.redis_.close();
      if (asking.stopped_) break;
      if (found)
        asking.take(*found);
      else
        asking.complain();
    } catch (const std::bad_alloc&) {  // the loop tries again
    }
    pause = asking.is_agreed_ ? kPeriod : std::min(2 * pause, kMostPause);
    co_await asking.rest(pause);
  }
}

// Waits for a random time between half of `length` and `length`, so that weirs with the same Redis do not
// send their requests at the same time.
net::Task<void> SharedSecret::Agreement::rest(base::Duration length) {
  std::uniform_int_distribution<std::int64_t> jitter(length.count() / 2, length.count());
  pause_.expires_after(base::Duration(jitter(random_)));
  net::ErrorCode ignored;
  if (!stopped_) co_await pause_.async_wait(net::use_task(ignored));
}

// Asks one server after another for the agreed secret until one answers. The servers are the standalone
// server, the nodes of a cluster, or the masters that Sentinels report.
net::Task<std::optional<base::SipKey>> SharedSecret::Agreement::ask_any_server() {
  const bool cluster = settings_.topology == Topology::Cluster;
  const std::size_t tries = cluster      ? settings_.nodes.size()
                            : sentinels_ ? settings_.sentinel.addresses.size()
                                         : 1;
  for (std::size_t i = 0; i < tries && !stopped_; ++i) {
    Target target{cluster ? settings_.nodes[i] : settings_.address};
    net::ErrorCode ec;
    if (sentinels_) ec = co_await sentinels_->locate(target.address);
    if (ec) {
      why_ = sentinels_->why();
      continue;
    }
    const auto found = co_await ask_at(std::move(target));
    if (sentinels_ && found) sentinels_->confirm_master();
    if (sentinels_ && !found) sentinels_->doubt_master();
    if (found) co_return found;
  }
  co_return std::nullopt;
}

// Offers this weir's secret, and returns the secret that Redis then has. Sends SET even if Redis already has
// a secret: a replica rejects SET, so weir never reads a replica, whose secret may be outdated.
net::Task<std::optional<base::SipKey>> SharedSecret::Agreement::ask_at(Target target) {
  std::string offer, question;
  append_command(offer, {"SET", name_, in_hex(secret_), "NX"});
  append_command(question, {"MGET", name_});
  bool answered = co_await meet(target.address);
  if (answered) answered = co_await run(offer, target);
  if (answered) answered = co_await run(question, target);
  if (!answered) co_return std::nullopt;
  const Reply& reply = redis_.reply();
  const auto found = reply.words.empty() ? std::nullopt : secret_in(reply.words.front());
  if (!found)
    why_ = name_ +
           " contains something other than weir's secret; delete that key, or set [state] key_secret on "
           "every instance";
  co_return found;
}

// Reads the secret with MGET, which returns nil both for a missing key and for a value that is not a string.
// EXISTS distinguishes these two cases. If TYPE fails, the description only lacks the type. The ACL user may
// lack the right to run TYPE, because weir needs it nowhere else.
net::Task<SecretState> SharedSecret::Agreement::look_at(Target target) {
  using State = SecretState::State;
  std::string question, presence, type;
  append_command(question, {"MGET", name_});
  append_command(presence, {"EXISTS", name_});
  append_command(type, {"TYPE", name_});
  bool answered = co_await meet(target.address);
  if (answered) answered = co_await run(question, target);
  if (!answered) co_return SecretState{State::Unknown, why_};
  if (!redis_.reply().words.empty()) {
    const std::string& text = redis_.reply().words.front();
    if (secret_in(text)) co_return SecretState{State::Good};
    const auto size = std::to_string(text.size()) + (text.size() == 1 ? " octet" : " octets");
    co_return SecretState{State::Foreign, "a text of " + size};
  }
  answered = co_await run(presence, target);
  if (!answered) co_return SecretState{State::Unknown, "EXISTS: " + why_};
  const auto& counts = redis_.reply().numbers;
  if (counts.empty() || counts.front() == 0) co_return SecretState{State::Absent};
  answered = co_await run(type, target);
  co_return SecretState{State::Foreign,
                        answered ? "a value of type " + redis_.reply().text : "a value that is not a text"};
}

// Connects to the server and signs in.
net::Task<bool> SharedSecret::Agreement::meet(const base::Endpoint& address) {
  const SetupCommands setup = sign_in(settings_);
  net::ErrorCode ec = co_await redis_.open(address);
  if (!ec && !setup.bytes.empty()) ec = co_await redis_.send(setup.bytes);
  for (std::size_t i = 0; i < setup.steps.size() && !ec; ++i) {
    ec = co_await redis_.receive();
    if (ec || redis_.reply().kind != Reply::Kind::Error) continue;
    why_ = redis_.reply().text;
    co_return false;
  }
  if (ec) why_ = redis_.why();
  co_return !ec;
}

// Sends a command. Returns true if the reply is not an error. Follows the redirections of a cluster.
net::Task<bool> SharedSecret::Agreement::run(const std::string& command, Target& target) {
  std::string asking;
  append_command(asking, {"ASKING"});
  for (int i = 0; i <= kMostRedirections; ++i) {
    net::ErrorCode ec;
    if (target.asking) ec = co_await redis_.ask(asking);
    if (!ec) ec = co_await redis_.ask(command);
    if (ec) {
      why_ = redis_.why();
      co_return false;
    }
    const Reply& reply = redis_.reply();
    if (reply.kind != Reply::Kind::Error) co_return true;
    why_ = readable(reply.text);
    auto elsewhere = redirection_in(reply.text, target.address);
    if (!elsewhere || settings_.topology != Topology::Cluster) co_return false;
    target = {std::move(elsewhere->to), elsewhere->kind == Redirection::Kind::Ask};
    const bool met = co_await meet(target.address);
    if (!met) co_return false;
  }
  co_return false;
}

void SharedSecret::Agreement::take(const base::SipKey& found) {
  const bool first = !is_agreed_;
  const bool changed = found != secret_;
  if (agreed_ && (first || changed)) agreed_(found);
  why_.clear();
  (void)log_throttle_.settle();
  is_agreed_ = true;
  secret_ = found;
  if (log_ && first) log_(LogLevel::Info, "redis: using the secret in " + name_);
  if (log_ && !first && changed)
    log_(LogLevel::Warning, "redis: " + name_ +
                                " contains another secret than before, perhaps after a loss of data; weir "
                                "uses it, and clients start with new limits in Redis");
}

// Logs why weir has no agreed secret. Logs nothing after the first success, because the store logs failures
// of Redis.
void SharedSecret::Agreement::complain() {
  if (is_agreed_ || !log_) return;
  const auto line = "redis: cannot read the secret in " + name_ + ": " + why_ +
                    "; rules with store = \"redis\" follow on_store_failure meanwhile";
  if (log_throttle_.raise(line, std::chrono::steady_clock::now())) log_(LogLevel::Warning, line);
}

net::Task<SecretState> SharedSecret::read(net::Executor executor, const RedisSettings& settings,
                                          base::Endpoint address) {
  const auto asking = std::make_shared<Agreement>(executor, settings, base::SipKey{}, StoreLog{}, OnSecret{});
  Target target{std::move(address)};
  SecretState look = co_await asking->look_at(std::move(target));
  asking->stop();
  co_return look;
}

SharedSecret::SharedSecret(net::Executor executor, const RedisSettings& settings, const base::SipKey& offered,
                           StoreLog log, OnSecret agreed)
    : asking_(std::make_shared<Agreement>(executor, settings, offered, std::move(log), std::move(agreed))) {}

SharedSecret::~SharedSecret() {
  stop();
}

void SharedSecret::start() {
  asking_->start();
}
void SharedSecret::stop() {
  asking_->stop();
}
bool SharedSecret::is_agreed() const noexcept {
  return asking_->is_agreed();
}
const std::string& SharedSecret::why() const noexcept {
  return asking_->why();
}

}  // namespace weir::redis
