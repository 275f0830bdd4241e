// Posts one message to a webhook, over a connection of its own.
//
// Belongs to one thread's loop. Looks the name up for each message, so that the receiver may move. If the
// look-up takes more than half of the time-out, it continues alone, and the post uses the name's former
// addresses.
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
  // `lookup`: the receiver's name; outlives the post.
  Post(net::Executor executor, net::Watchdog& watchdog, net::NameLookup& lookup)
      : Watched(watchdog), executor_(executor), watchdog_(watchdog), lookup_(lookup), pause_(executor) {}

  struct End {
    std::string fault;            // empty: the receiver accepted the message
    bool hopeless = false;        // another attempt would have the same result
    bool may_have_taken = false;  // the whole message was sent, but no response says whether it was accepted
  };
  // Posts `body`. One call at a time. `tls`: the context that verifies the server; null without TLS. `hook`
  // and `body` outlive the task.
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
  net::Timer pause_;  // between two checks of lookup_
  std::unique_ptr<net::Stream> stream_;
  net::Dial* dial_ = nullptr;  // in the frame of connect() while it waits
  bool late_ = false;
  const char* late_fault_ = "";  // the fault to report if the deadline passes now
};

}  // namespace weir::admin
