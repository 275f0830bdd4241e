// An upgrade from the new process's side: what this process inherits from the old process that started it,
// and the messages until this process serves. Belongs to the main thread and blocks. The old process sets the
// time limits, and ends this process when a limit has passed.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/result.hpp"
#include "weir/base/siphash.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/snapshot.hpp"
#include "weir/net/listener.hpp"
#include "weir/upgrade/upgrade_channel.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::upgrade {

// State that the old process passes on in addition to sockets and keys.
struct CarriedState {
  base::Duration clock{};      // net::Clock::offset() of the old process
  base::SipKey table, shared;  // keys of the digests that stand for clients (policy::NamingKeys)
  // The numbers of earlier upgrades that succeeded and that failed.
  std::uint64_t upgraded = 0;
  std::uint64_t failed = 0;
};
[[nodiscard]] std::vector<std::string> lines_of(const CarriedState& carried_state);
// Returns the state that the lines describe. Returns nullopt if the lines have another form or another
// protocol version.
[[nodiscard]] std::optional<CarriedState> carried_state_of(const std::vector<std::string>& lines);

// The states of all keys, the held permits, and the servers that operators have changed.
struct InheritedState {
  net::OwnedDescriptor file;      // see handed_state.hpp
  std::vector<std::string> held;  // lines about held permits (permit_changes.hpp) and changed servers
};

// The values that the new process receives when it becomes the main process.
struct HandoffChannel {
  net::OwnedDescriptor channel;     // the channel through which the old process sends its connections
  std::vector<std::string> alerts;  // lines with the states of alerts; see handed_alerts.hpp
};

class Takeover {
 public:
  // The environment variable that contains the number of the channel's descriptor.
  static constexpr const char* kVariable = "WEIR_UPGRADE_FD";

  // Returns null if no old process started this one. Must be called before another thread starts, because it
  // changes the environment. Throws CannotStart if the old process uses another version of the protocol, or
  // if this process may open too few file descriptors.
  [[nodiscard]] static std::unique_ptr<Takeover> of_environment();

  [[nodiscard]] const CarriedState& carried_state() const noexcept { return carried_state_; }
  // Returns the inherited sockets of the listener at this configured address. Returns an empty list if the
  // old process did not listen there, or if an earlier call has returned the sockets.
  [[nodiscard]] std::vector<net::ListeningSocket> take_listeners(const base::Endpoint& address);
  // Returns the inherited sockets of the admin listener at this configured address. Returns an empty list if
  // the old process had no such listener, or if an earlier call has returned the sockets.
  [[nodiscard]] std::vector<net::ListeningSocket> take_admin(const base::Endpoint& address);
  // Closes the inherited sockets that neither take_listeners() nor take_admin() has returned.
  void close_rest();
  // Removes the files of those unix sockets that close_rest() has closed. Must be called only after this
  // process has become the main process.
  void remove_files_of_rest() noexcept;

  // Reports to the old process that this process cannot take over, and why.
  void fail(std::string_view why) noexcept;
  // Reports that this process can take over, and waits for the states of all keys. Throws CannotStart if the
  // old process has given up or ended.
  [[nodiscard]] InheritedState await_state();
  // Reports that the states are restored, and waits for the message that allows this process to accept
  // connections. If the old process has ended, returns at once, because no other process serves.
  void await_open_message(const limit::Restored& restored);
  // Reports that this process accepts connections, and sends the IDs of its alerts. Waits until the service
  // manager knows this process as the service's main process.
  [[nodiscard]] HandoffChannel await_handoff_channel(const std::vector<std::string>& alert_ids);

 private:
  struct Inherited {
    std::string word, address;
    std::vector<net::OwnedDescriptor> sockets;
  };

  explicit Takeover(net::OwnedDescriptor channel) : channel_(std::move(channel)) {}
  void read_inheritance();
  [[nodiscard]] std::optional<UpgradeMessage> await(std::string_view word);
  [[nodiscard]] std::vector<net::ListeningSocket> take(std::string_view word, const base::Endpoint& address);

  net::OwnedDescriptor channel_;
  CarriedState carried_state_;
  std::vector<Inherited> inherited_;
  std::vector<std::string> files_;  // files of the unix sockets that close_rest() has closed
};

}  // namespace weir::upgrade
