// One POST to a webhook, over a connection of its own.
//
// Belongs to one thread's loop. The name is looked up for each, so a receiver may move. A look-up that takes
// more than half of the time-out is left to itself: then the addresses count that the name had before.
#pragma once

#include "weir/admin/alert_settings.hpp"
#include "weir/net/dial.hpp"
#include "weir/net/name_lookup.hpp"
#include "weir/net/signal.hpp"
#include "weir/net/watchdog.hpp"

#include <memory>
#include <string>

namespace weir::admin {

class Post final : net::Watched {
 public:
  // `lookup`: of the receiver's name; outlives the post.
  Post(net::Executor executor, net::Watchdog& watchdog, net::NameLookup& lookup)
      : Watched(watchdog), executor_(executor), watchdog_(watchdog), lookup_(lookup), pause_(executor) {}

  struct End {
    std::string fault;            // empty: the receiver took it
    bool hopeless = false;        // another attempt would end like this one
    bool may_have_taken = false;  // the whole message went out, and no answer says what became of it
  };
  // `tls`: the context that its server is believed by; null where it speaks none. One at a time. `hook` and
  // `body` outlive the task.
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
  net::Timer pause_;  // between two looks at lookup_
  std::unique_ptr<net::Stream> stream_;
  net::Dial* dial_ = nullptr;  // in the frame of connect(), while it waits
  bool late_ = false;
  const char* late_fault_ = "";  // what the deadline would mean now
};

}  // namespace weir::admin
