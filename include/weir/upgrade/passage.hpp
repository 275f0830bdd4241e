// Sends connections from the process that retires to the one that has taken over. Each connection is one
// message (upgrade_channel.hpp) with its socket.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/proxy/passage.hpp"
#include "weir/upgrade/upgrade_channel.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/posix/basic_stream_descriptor.hpp>

namespace weir::app {

// Used by the process that retires. Its workers share the object, which outlives them.
class Departures final : public proxy::Passage {
 public:
  explicit Departures(net::OwnedDescriptor channel) noexcept : channel_(std::move(channel)) {}
  [[nodiscard]] proxy::Passed take(int fd, std::string_view listener, const proxy::Introduction& introduction,
                                   std::string_view unread) noexcept override;
  // Sends the changes of permits (held_news.hpp). If that fails, the other process counts the old permits
  // until this one ends.
  void tell_held(const std::vector<std::string>& lines) noexcept;

 private:
  net::OwnedDescriptor channel_;
};

// A connection that has arrived, and the address of its listener.
struct ArrivedConnection {
  net::OwnedDescriptor socket;
  std::string listener;
  proxy::Introduction introduction;
  std::string unread;  // bytes of its next request that were read already
};

// Used by the process that has taken over, until the other one has ended. Belongs to the main thread.
class Arrivals {
 public:
  struct House {
    std::function<void(ArrivedConnection)> take;  // for each connection
    std::function<void()> lost;                   // for a connection without its socket
    // change_held: for changes of the other process's permits (held_news.hpp). ended: when the other process
    // has ended, unless end() or close() was called before.
    std::function<void(const std::vector<std::string>& lines)> change_held;
    std::function<void()> ended;
  };

  Arrivals(net::Executor control, net::OwnedDescriptor channel, House house);
  // Returns true if connections may still arrive: the other process lives, and close() was not called.
  [[nodiscard]] bool are_expected() const noexcept { return channel_.is_open(); }
  // Takes the connections that are on their way. The other process keeps those that it has not sent yet.
  void end();
  void close() noexcept;

 private:
  void await_next();
  [[nodiscard]] bool read_all();

  net::asio::posix::basic_stream_descriptor<net::Executor> channel_;
  const House house_;
};

}  // namespace weir::app
