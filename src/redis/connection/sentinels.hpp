// The Sentinels of one master: where it is, and when that changes (redis.io, "Sentinel client spec").
//
// Belongs to a store's session and its thread. Which Sentinel answers is no matter: one that knows an old
// master is found out when that one cannot be reached or says its role, and the next one is asked.
#pragma once

#include "redis/connection/conversation.hpp"
#include "redis/connection/resp.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"
#include "weir/redis/redis_settings.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::redis {

// The answer to SENTINEL get-master-addr-by-name; nullopt where it is none.
[[nodiscard]] std::optional<base::Endpoint> master_in(const Reply& reply);
// Where the master called `master` is now, if the reply is the message on +switch-master that says so.
[[nodiscard]] std::optional<base::Endpoint> switched_to(const Reply& reply, std::string_view master);

class Sentinels : public std::enable_shared_from_this<Sentinels> {
 public:
  // `patience`: how long one Sentinel may take for one answer.
  // `tls`: null for plain.
  Sentinels(net::Executor executor, const SentinelSettings& settings, base::Duration patience,
            const std::shared_ptr<TlsClient>& tls = nullptr);

  // Asks one after the other until one knows, beginning with the one that knew last. One call at a time.
  [[nodiscard]] net::Awaitable<net::ErrorCode> locate(base::Endpoint& master);
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  // What locate() found proved to be the master, or not: then the next call begins with another Sentinel. Who
  // is listened to and says otherwise than what proved true is left.
  void believe() noexcept;
  void doubt() noexcept;

  // Listens to one Sentinel or another until stop(): `moved` is called whenever the master is not, or no
  // longer, where locate() found it last; `ended` when it has come to an end, and of what.
  void follow(std::function<void()> moved, std::function<void(std::exception_ptr)> ended);
  void stop() noexcept;
  // Ends a locate() under way.
  void cancel() noexcept;

 private:
  static net::Awaitable<void> watch(std::shared_ptr<Sentinels> self);
  [[nodiscard]] net::Awaitable<net::ErrorCode> greet(Conversation& with, const base::Endpoint& sentinel);
  [[nodiscard]] net::Awaitable<net::ErrorCode> ask_one(const base::Endpoint& sentinel,
                                                       base::Endpoint& master);
  [[nodiscard]] net::Awaitable<net::ErrorCode> listen(const base::Endpoint& sentinel);
  [[nodiscard]] net::Awaitable<net::ErrorCode> subscribe();
  void hear(const base::Endpoint& master);

  const SentinelSettings settings_;
  const base::Duration patience_;
  std::string hello_;          // AUTH, or nothing
  std::string question_;       // where the master is
  std::size_t first_ = 0;      // the Sentinel that knew last
  base::Endpoint located_;     // what it said
  bool on_its_word_ = false;   // it has not proved true yet, nor has another said otherwise
  std::size_t listened_ = 0;   // whom we listen to
  base::Endpoint last_heard_;  // what that one said last; port 0: nothing yet
  std::string why_;
  Conversation asked_;
  Conversation heard_;
  net::Timer pause_;
  std::function<void()> moved_;
  bool cancelled_ = false;  // the locate() under way is of no more use
  bool stopped_ = false;
};

}  // namespace weir::redis
