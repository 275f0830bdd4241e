#include "redis/connection/sentinels.hpp"

#include "redis/connection/classify.hpp"
#include "redis/connection/command.hpp"
#include "redis/connection/setup_commands.hpp"

#include "weir/net/reactor.hpp"
#include "weir/net/use_task.hpp"
#include "weir/redis/error.hpp"

#include <charconv>
#include <new>
#include <utility>

namespace weir::redis {

namespace {

using namespace std::chrono_literals;

// How long a subscribed Sentinel may be silent before weir sends PING. If PING gets no answer, weir
// subscribes to the next Sentinel.
constexpr base::Duration kSilence = 2s;
// Pause before weir asks all Sentinels again, after all of them have failed.
constexpr base::Duration kPause = 300ms;

std::optional<base::Endpoint> endpoint_of(std::string_view host, std::string_view port) {
  base::Endpoint endpoint{std::string(host), 0, ""};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (error != std::errc{} || end != port.data() + port.size() || endpoint.port == 0 || host.empty())
    return std::nullopt;
  return endpoint;
}

// Removes and returns the first word of `text`.
std::string_view take_word(std::string_view& text) {
  const auto word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

bool is_refusal(const Reply& reply) noexcept {
  return reply.kind == Reply::Kind::Error;
}

}  // namespace

std::optional<base::Endpoint> master_in(const Reply& reply) {
  if (reply.kind != Reply::Kind::Other || reply.words.size() != 2) return std::nullopt;
  return endpoint_of(reply.words[0], reply.words[1]);
}

// Parses a +switch-master message, whose text is "NAME OLD-ADDRESS OLD-PORT NEW-ADDRESS NEW-PORT".
std::optional<base::Endpoint> switched_to(const Reply& reply, std::string_view master) {
  if (reply.words.size() != 3 || reply.words[0] != "message" || reply.words[1] != "+switch-master")
    return std::nullopt;
  std::string_view text = reply.words[2];
  if (take_word(text) != master) return std::nullopt;
  take_word(text);
  take_word(text);
  const auto host = take_word(text);
  return endpoint_of(host, text);
}

Sentinels::Sentinels(net::Executor executor, const SentinelSettings& settings, base::Duration patience,
                     const std::shared_ptr<TlsClient>& tls)
    : settings_(settings),
      patience_(patience),
      query_(executor, patience, tls),
      subscription_(executor, kSilence, tls),
      pause_(executor) {
  SetupCommands setup;
  add_auth(setup, settings_.user, settings_.password);
  hello_ = std::move(setup.bytes);
  append_command(question_, {"SENTINEL", "get-master-addr-by-name", settings_.master});
}

net::Task<net::ErrorCode> Sentinels::locate(base::Endpoint& master) {
  net::ErrorCode ec = StoreError::Away;
  cancelled_ = stopped_;
  for (std::size_t i = 0; i < settings_.addresses.size() && !cancelled_; ++i) {
    const std::size_t index = (first_ + i) % settings_.addresses.size();
    ec = co_await ask_one(settings_.addresses[index], master);
    if (ec) continue;
    first_ = index;
    located_ = master;
    is_unconfirmed_ = true;
    break;
  }
  query_.close();
  co_return ec;
}

void Sentinels::confirm_master() noexcept {
  is_unconfirmed_ = false;
  if (last_announced_.port != 0 && last_announced_ != located_) subscription_.close();
}

void Sentinels::doubt_master() noexcept {
  if (std::exchange(is_unconfirmed_, false)) first_ = (first_ + 1) % settings_.addresses.size();
}

net::Task<net::ErrorCode> Sentinels::greet(RequestReply& with, const base::Endpoint& sentinel) {
  net::ErrorCode ec = co_await with.open(sentinel);
  if (ec || hello_.empty()) co_return ec;
  ec = co_await with.ask(hello_);
  if (!ec && is_refusal(with.reply())) ec = StoreError::NotAllowed;
  co_return ec;
}

net::Task<net::ErrorCode> Sentinels::ask_one(const base::Endpoint& sentinel, base::Endpoint& master) {
  net::ErrorCode ec = co_await greet(query_, sentinel);
  if (!ec) ec = co_await query_.ask(question_);
  const std::string who = "sentinel " + sentinel.to_string();
  if (ec == StoreError::NotAllowed || (!ec && is_refusal(query_.reply()))) {
    why_ = who + ": " + readable(query_.reply().text);
    co_return StoreError::NotAllowed;
  }
  if (ec) {
    why_ = who + ": " + query_.why();
    co_return StoreError::Away;
  }
  auto found = master_in(query_.reply());
  if (!found) {
    why_ = who + " does not know a master " + settings_.master;
    co_return StoreError::Away;
  }
  master = *std::move(found);
  co_return ec;
}

void Sentinels::follow(std::function<void()> moved, std::function<void(std::exception_ptr)> ended) {
  moved_ = std::move(moved);
  const auto executor = pause_.get_executor();
  net::spawn(executor, watch(shared_from_this()), std::move(ended));
}

void Sentinels::cancel() noexcept {
  cancelled_ = true;
  query_.close();
}

void Sentinels::stop() noexcept {
  stopped_ = true;
  cancel();
  subscription_.close();
  pause_.cancel();
}

net::Task<void> Sentinels::watch(std::shared_ptr<Sentinels> self) {
  Sentinels& sentinels = *self;
  while (!sentinels.stopped_) {
    const auto& addresses = sentinels.settings_.addresses;
    const std::size_t first = sentinels.first_;
    for (std::size_t i = 0; i < addresses.size() && sentinels.first_ == first && !sentinels.stopped_; ++i) {
      sentinels.listened_ = (first + i) % addresses.size();
      try {
        const net::ErrorCode ec = co_await sentinels.listen(addresses[sentinels.listened_]);
        (void)ec;  // the loop tries the next Sentinel; locate() reports an error if none answers
      } catch (const std::bad_alloc&) {  // the loop tries the next Sentinel
      }
    }
    if (sentinels.stopped_) break;
    sentinels.pause_.expires_after(kPause);
    net::ErrorCode ignored;
    co_await sentinels.pause_.async_wait(net::use_task(ignored));
  }
}

// Listens to one Sentinel until the connection is closed. Returns the reason why the connection was closed.
net::Task<net::ErrorCode> Sentinels::listen(const base::Endpoint& sentinel) {
  std::string ping;
  append_command(ping, {"PING"});
  last_announced_ = {};
  net::ErrorCode ec = co_await greet(subscription_, sentinel);
  if (!ec) ec = co_await subscribe();
  bool pinged = false;
  while (!stopped_ && (!ec || ec == StoreError::Timeout)) {
    if (ec && std::exchange(pinged, true)) break;
    if (ec) {
      ec = co_await subscription_.send(ping);
    } else {
      pinged = false;
      if (const auto master = switched_to(subscription_.reply(), settings_.master)) announce(*master);
    }
    if (!ec) ec = co_await subscription_.receive();
  }
  subscription_.close();
  co_return ec;
}

// Sends the query for the master and the subscription in one write, so that weir misses no change of master
// between the two commands.
net::Task<net::ErrorCode> Sentinels::subscribe() {
  std::string both = question_;
  append_command(both, {"SUBSCRIBE", "+switch-master"});
  net::ErrorCode ec = co_await subscription_.ask(both);
  if (ec) co_return ec;
  const auto master = master_in(subscription_.reply());
  if (!master) co_return StoreError::Away;
  announce(*master);
  ec = co_await subscription_.receive();
  if (!ec && is_refusal(subscription_.reply())) ec = StoreError::NotAllowed;
  co_return ec;
}

// Handles a report of the master's address from the Sentinel to which weir listens. If locate() found another
// address before, calls moved_(). The next locate() then begins with this Sentinel.
void Sentinels::announce(const base::Endpoint& master) {
  last_announced_ = master;
  if (stopped_ || master == located_ || located_.port == 0) return;
  first_ = listened_;
  is_unconfirmed_ = false;
  moved_();
}

}  // namespace weir::redis
