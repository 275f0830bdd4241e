// Sends connections from the process that retires to the one that has taken over. Each connection is one
// message (upgrade_channel.hpp) with its socket.
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

// Used by the process that retires. Its workers share the object, which outlives them.
class HandoffSender final : public proxy::ConnectionHandoff {
 public:
  explicit HandoffSender(net::OwnedDescriptor channel) noexcept : channel_(std::move(channel)) {}
  [[nodiscard]] proxy::HandoffResult take(int fd, std::string_view listener,
                                          const proxy::ConnectionInfo& connection_info,
                                          std::string_view unread) noexcept override;
  // Sends the changes of permits (permit_changes.hpp). If that fails, the other process counts the old
  // permits until this one ends.
  void report_permits(const std::vector<std::string>& lines) noexcept;

 private:
  net::OwnedDescriptor channel_;
};

// A connection that has arrived, and the address of its listener.
struct ReceivedConnection {
  net::OwnedDescriptor socket;
  std::string listener;
  proxy::ConnectionInfo connection_info;
  std::string unread;  // bytes of its next request that were read already
};

// Used by the process that has taken over, until the other one has ended. Belongs to the main thread.
class HandoffReceiver {
 public:
  struct Callbacks {
    std::function<void(ReceivedConnection)> take;  // for each connection
    std::function<void()> lost;                    // for a connection without its socket
    // change_foreign_permits: for changes of the other process's permits (permit_changes.hpp). ended: when
    // the other process has ended, unless end() or close() was called before.
    std::function<void(const std::vector<std::string>& lines)> change_foreign_permits;
    std::function<void()> ended;
  };

  HandoffReceiver(net::Executor control, net::OwnedDescriptor channel, Callbacks callbacks);
  // Returns true if connections may still arrive: the other process lives, and close() was not called.
  [[nodiscard]] bool are_expected() const noexcept { return channel_.is_open(); }
  // Takes the connections that are on their way. The other process keeps those that it has not sent yet.
  void end();
  void close() noexcept;

 private:
  void await_next();
  [[nodiscard]] bool read_all();

  net::asio::posix::basic_stream_descriptor<net::Executor> channel_;
  const Callbacks callbacks_;
};

}  // namespace weir::upgrade
