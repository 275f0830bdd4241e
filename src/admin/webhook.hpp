// One POST to a webhook, over a connection of its own.
//
// Belongs to one thread's loop. The name is looked up for each, so a receiver may move.
#pragma once

#include "weir/admin/alert_settings.hpp"
#include "weir/net/dial.hpp"
#include "weir/net/signal.hpp"
#include "weir/net/watchdog.hpp"

#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>

namespace weir::admin {

class Post final : net::Watched {
 public:
  Post(net::Executor executor, net::Watchdog& watchdog)
      : Watched(watchdog), executor_(executor), watchdog_(watchdog), resolver_(executor) {}

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
  using Resolver = net::asio::ip::basic_resolver<net::asio::ip::tcp, net::Executor>;
  class Lookup;

  void on_late() noexcept override;
  [[nodiscard]] net::Task<End> attempt(const Webhook& hook, SSL_CTX* tls, base::Duration timeout,
                                       const std::string& body);
  [[nodiscard]] net::Task<net::ErrorCode> connect(net::Dial::Target target, base::Duration timeout,
                                                  std::string& fault);
  [[nodiscard]] net::Task<std::string> read_status(unsigned& status);

  net::Executor executor_;
  net::Watchdog& watchdog_;
  Resolver resolver_;
  std::unique_ptr<net::Stream> stream_;
  net::Dial* dial_ = nullptr;  // in the frame of connect(), while it waits
  bool late_ = false;
  const char* late_fault_ = "";  // what the deadline would mean now
};

}  // namespace weir::admin
