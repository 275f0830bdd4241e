// The Sentinels of one master. They report the master's address and its changes (redis.io, "Sentinel client
// spec").
//
// Belongs to a store's session and its thread. Any Sentinel may answer. If one reports an old master, that
// server cannot be reached or does not have the master's role, and the next Sentinel is asked.
#pragma once

#include "redis/connection/request_reply.hpp"
#include "redis/connection/resp.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"
#include "weir/redis/redis_settings.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::redis {

// Returns the address in a reply to SENTINEL get-master-addr-by-name; nullopt for any other reply.
[[nodiscard]] std::optional<base::Endpoint> master_in(const Reply& reply);
// Returns the new address of the master called `master` if the reply is a +switch-master message about it.
[[nodiscard]] std::optional<base::Endpoint> switched_to(const Reply& reply, std::string_view master);

class Sentinels : public std::enable_shared_from_this<Sentinels> {
 public:
  // `patience`: the longest wait for one reply of one Sentinel. `tls`: null for connections without TLS.
  Sentinels(net::Executor executor, const SentinelSettings& settings, base::Duration patience,
            const std::shared_ptr<TlsClient>& tls = nullptr);

  // Asks the Sentinels in turn until one knows the master. Begins with the Sentinel that knew it last. Only
  // one call may run at a time.
  [[nodiscard]] net::Task<net::ErrorCode> locate(base::Endpoint& master);
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  // The session must call one of these after locate(): believe() if the server proved to be the master, else
  // doubt(). After doubt() the next locate() begins with another Sentinel. After believe(), a subscription to
  // a Sentinel that reports another master is ended.
  void believe() noexcept;
  void doubt() noexcept;

  // Subscribes to one Sentinel after another until stop(). Calls `moved` whenever the reported master differs
  // from the one that locate() found last. Calls `ended` when the subscription's coroutine ends, with its
  // exception.
  void follow(std::function<void()> moved, std::function<void(std::exception_ptr)> ended);
  void stop() noexcept;
  // Ends the current locate().
  void cancel() noexcept;

 private:
  static net::Task<void> watch(std::shared_ptr<Sentinels> self);
  [[nodiscard]] net::Task<net::ErrorCode> greet(RequestReply& with, const base::Endpoint& sentinel);
  [[nodiscard]] net::Task<net::ErrorCode> ask_one(const base::Endpoint& sentinel, base::Endpoint& master);
  [[nodiscard]] net::Task<net::ErrorCode> listen(const base::Endpoint& sentinel);
  [[nodiscard]] net::Task<net::ErrorCode> subscribe();
  void hear(const base::Endpoint& master);

  const SentinelSettings settings_;
  const base::Duration patience_;
  std::string hello_;          // AUTH, or empty
  std::string question_;       // the command that asks for the master
  std::size_t first_ = 0;      // the Sentinel that knew last
  base::Endpoint located_;     // the master it reported
  bool on_its_word_ = false;   // located_ is neither confirmed nor contradicted yet
  std::size_t listened_ = 0;   // the Sentinel that watch() listens to
  base::Endpoint last_heard_;  // the master it reported last; port 0: none yet
  std::string why_;
  RequestReply asked_;
  RequestReply heard_;
  net::Timer pause_;
  std::function<void()> moved_;
  bool cancelled_ = false;  // the current locate() was cancelled
  bool stopped_ = false;
};

}  // namespace weir::redis
