// Sends open connections from the old process to the new one after the new process has taken over. Each
// connection is one message (upgrade_channel.hpp) with its socket.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/proxy/connection_handoff.hpp"
#include "weir/upgrade/upgrade_channel.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/posix/basic_stream_descriptor.hpp>

namespace weir::upgrade {

// The sending end of the transfer, in the old process. All workers of that process share this object, which
// must outlive them.
class HandoffSender final : public proxy::ConnectionHandoff {
 public:
  explicit HandoffSender(net::OwnedDescriptor channel) noexcept : channel_(std::move(channel)) {}
  [[nodiscard]] proxy::HandoffResult take(int fd, std::string_view listener,
                                          const proxy::ConnectionInfo& connection_info,
                                          std::string_view unread) noexcept override;
  // Sends changes of the concurrency permits that this process holds (permit_changes.hpp). If sending fails,
  // the new process keeps the counts that were reported last, until this process ends.
  void report_permits(const std::vector<std::string>& lines) noexcept;

 private:
  net::OwnedDescriptor channel_;
};

// A connection that the old process sent, and the address of its listener.
struct ReceivedConnection {
  net::OwnedDescriptor socket;
  std::string listener;
  proxy::ConnectionInfo connection_info;
  std::string unread;  // bytes of the connection's next request that the old process has already read
};

// The receiving end of the transfer, in the new process. Exists until the old process has ended. Belongs to
// the main thread.
class HandoffReceiver {
 public:
  struct Callbacks {
    std::function<void(ReceivedConnection)> take;  // called with each connection
    std::function<void()> lost;                    // called for each connection whose socket did not arrive
    // change_foreign_permits: called when the concurrency permits of the old process change
    // (permit_changes.hpp). ended: called when the old process has ended, but not after end() or close().
    std::function<void(const std::vector<std::string>& lines)> change_foreign_permits;
    std::function<void()> ended;
  };

  // Throws boost::system::system_error if epoll does not accept the channel.
  HandoffReceiver(net::Executor control, net::OwnedDescriptor channel, Callbacks callbacks);
  // Returns true if connections may still arrive: the old process runs, and neither end() nor close() was
  // called.
  [[nodiscard]] bool are_expected() const noexcept { return channel_.is_open(); }
  // Receives the connections that are already in the channel, and then closes the channel. The old process
  // keeps the connections that it has not sent yet.
  void end();
  // Closes the channel without receiving the connections in it.
  void close() noexcept;

 private:
  void await_next();
  [[nodiscard]] bool read_all();

  net::asio::posix::basic_stream_descriptor<net::Executor> channel_;
  const Callbacks callbacks_;
};

}  // namespace weir::upgrade
