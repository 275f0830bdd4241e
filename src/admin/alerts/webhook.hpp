// Posts one message to a webhook, over its own connection.
//
// Belongs to the thread of one event loop. Looks up the receiver's name for each message, because its
// addresses may change. If the look-up takes more than half of the time limit, the post uses the addresses of
// an earlier look-up, and the look-up continues in the background.
#pragma once

#include "weir/admin/alert_settings.hpp"
#include "weir/net/dial.hpp"
#include "weir/net/name_lookup.hpp"
#include "weir/net/watchdog.hpp"

#include <memory>
#include <string>

namespace weir::admin {

class Post final : net::Watched {
 public:
  // `lookup`: looks up the receiver's host name; must outlive the post.
  Post(net::Executor executor, net::Watchdog& watchdog, net::NameLookup& lookup)
      : Watched(watchdog), executor_(executor), watchdog_(watchdog), lookup_(lookup), pause_(executor) {}

  // The result of a post.
  struct End {
    std::string fault;      // empty: the receiver accepted the message
    bool hopeless = false;  // another attempt would have the same result
    // True: the whole message was sent, but no response says whether the receiver accepted it.
    bool may_have_taken = false;
  };
  // Posts `body`. Only one call may run at a time. `tls`: the TLS context that verifies the server; null
  // without TLS. `hook` and `body` must outlive the task.
  [[nodiscard]] net::Task<End> send(const Webhook& hook, SSL_CTX* tls, base::Duration timeout,
                                    const std::string& body);

 private:
  void on_late() noexcept override;
  [[nodiscard]] net::Task<End> attempt(const Webhook& hook, SSL_CTX* tls, base::Duration timeout,
                                       const std::string& body);
  [[nodiscard]] net::Task<std::string> look_up(const base::Endpoint& address, base::Duration patience);
  [[nodiscard]] net::Task<net::ErrorCode> connect(net::Dial::Target target, base::Duration timeout,
                                                  std::string& fault);
  [[nodiscard]] net::Task<std::string> read_status(unsigned& status);

  net::Executor executor_;
  net::Watchdog& watchdog_;
  net::NameLookup& lookup_;
  net::Timer pause_;  // timer for the pauses between checks whether lookup_ has ended
  std::unique_ptr<net::Stream> stream_;
  net::Dial* dial_ = nullptr;  // points into the frame of connect() while connect() waits; otherwise null
  bool late_ = false;
  const char* late_fault_ = "";  // text for End::fault if the deadline passes now
};

}  // namespace weir::admin
