// The Sentinels of one master. A Sentinel is a Redis process that reports the master's address and its
// changes (redis.io, "Sentinel client spec").
//
// Belongs to a store's session and its thread. Any Sentinel may answer. If a Sentinel reports a former
// master, which is unreachable or not a master any more, weir asks the next Sentinel.
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
// Returns the new address from a +switch-master message about the master called `master`; nullopt for any
// other reply.
[[nodiscard]] std::optional<base::Endpoint> switched_to(const Reply& reply, std::string_view master);

class Sentinels : public std::enable_shared_from_this<Sentinels> {
 public:
  // `patience`: the longest wait for one reply of a Sentinel. `tls`: null for connections without TLS.
  Sentinels(net::Executor executor, const SentinelSettings& settings, base::Duration patience,
            const std::shared_ptr<TlsClient>& tls = nullptr);

  // Asks one Sentinel after another until one reports the master's address. Begins with the Sentinel that
  // last reported an address. Must not be called while an earlier call runs.
  [[nodiscard]] net::Task<net::ErrorCode> locate(base::Endpoint& master);
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  // After locate(), the session must call confirm_master() if the server at the reported address is the
  // master. If that server is not the master or cannot be reached, the session must call doubt_master(). The
  // next locate() then begins with another Sentinel. confirm_master() also ends the subscription if the
  // subscribed Sentinel has reported another master.
  void confirm_master() noexcept;
  void doubt_master() noexcept;

  // Subscribes to a Sentinel, and to the next one when that subscription ends, until stop(). Calls `moved`
  // whenever the reported master differs from the result of the last locate(). When the coroutine that
  // subscribes ends, calls `ended` with its exception, or with null.
  void follow(std::function<void()> moved, std::function<void(std::exception_ptr)> ended);
  void stop() noexcept;
  // Ends the current call of locate().
  void cancel() noexcept;

 private:
  static net::Task<void> watch(std::shared_ptr<Sentinels> self);
  [[nodiscard]] net::Task<net::ErrorCode> greet(RequestReply& with, const base::Endpoint& sentinel);
  [[nodiscard]] net::Task<net::ErrorCode> ask_one(const base::Endpoint& sentinel, base::Endpoint& master);
  [[nodiscard]] net::Task<net::ErrorCode> listen(const base::Endpoint& sentinel);
  [[nodiscard]] net::Task<net::ErrorCode> subscribe();
  void announce(const base::Endpoint& master);

  const SentinelSettings settings_;
  const base::Duration patience_;
  std::string hello_;       // the AUTH command; empty if no password is set
  std::string question_;    // the command that asks for the master's address
  std::size_t first_ = 0;   // index of the Sentinel that last reported an address
  base::Endpoint located_;  // the master's address according to Sentinel first_
  // True: Sentinel first_ has reported located_, and weir does not know yet whether that server is the
  // master. Set by locate(). Cleared by confirm_master(), by doubt_master(), and by a report of another
  // master.
  bool is_unconfirmed_ = false;
  std::size_t listened_ = 0;  // index of the Sentinel that watch() subscribes to
  // The master's address that the subscribed Sentinel reported last; port 0: no report yet.
  base::Endpoint last_announced_;
  std::string why_;
  RequestReply query_;
  RequestReply subscription_;
  net::Timer pause_;
  std::function<void()> moved_;
  bool cancelled_ = false;  // true: cancel() was called during the current call of locate()
  bool stopped_ = false;
};

}  // namespace weir::redis
