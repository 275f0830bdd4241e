// Connections on their way between two processes: how the one that retires sends them, and the one that has
// taken over receives them. A message each (upgrade_channel.hpp), with the socket beside it.
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

// Of the process that retires. Shared by its workers, and outlives them.
class Departures final : public proxy::Passage {
 public:
  explicit Departures(net::OwnedDescriptor channel) noexcept : channel_(std::move(channel)) {}
  [[nodiscard]] proxy::Passed take(int fd, std::string_view listener, const proxy::Introduction& introduction,
                                   std::string_view unread) noexcept override;
  // What is held here (held_news.hpp). Where nobody takes it, it counts there until this process has ended.
  void tell_held(const std::vector<std::string>& lines) noexcept;

 private:
  net::OwnedDescriptor channel_;
};

// A connection that has come over, and the address of its listener.
struct ArrivedConnection {
  net::OwnedDescriptor socket;
  std::string listener;
  proxy::Introduction introduction;
  std::string unread;  // what was read of its next request
};

// Of the process that has taken over; until the other one has ended. Belongs to the main thread.
class Arrivals {
 public:
  struct House {
    std::function<void(ArrivedConnection)> take;  // each
    std::function<void()> lost;                   // one that came without its socket
    // Changes of what the other process holds (held_news.hpp); and that it has ended, unless that is not
    // waited for any more.
    std::function<void(const std::vector<std::string>& lines)> change_held;
    std::function<void()> ended;
  };

  Arrivals(net::Executor control, net::OwnedDescriptor channel, House house);
  // Whether any may come yet: the other process lives, and close() was not called.
  [[nodiscard]] bool are_expected() const noexcept { return channel_.is_open(); }
  // Takes those that are on their way, and none that the other process would send from now on: it keeps them.
  void end();
  void close() noexcept;

 private:
  void await_next();
  [[nodiscard]] bool read_all();

  net::asio::posix::basic_stream_descriptor<net::Executor> channel_;
  const House house_;
};

}  // namespace weir::app
