// The new process's side of an upgrade: what it inherits from the weir that started it, and the messages
// until it serves. Belongs to the main thread and blocks. The running weir keeps the deadlines, and ends this
// process if it is late.
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

// State that is passed on besides sockets and keys.
struct CarriedState {
  base::Duration clock{};      // net::Clock::offset()
  base::SipKey table, shared;  // policy::NamingKeys
  std::uint64_t upgraded = 0;  // earlier upgrades that succeeded; `failed`: those that failed
  std::uint64_t failed = 0;
};
[[nodiscard]] std::vector<std::string> lines_of(const CarriedState& carried_state);
// Returns nullopt if the lines have another form or another protocol version.
[[nodiscard]] std::optional<CarriedState> carried_state_of(const std::vector<std::string>& lines);

// The states of limits.
struct InheritedState {
  net::OwnedDescriptor file;      // handed_state.hpp
  std::vector<std::string> held;  // permit_changes.hpp
};

// The last items that the new process receives, when it becomes the service.
struct HandoffChannel {
  net::OwnedDescriptor channel;     // connections arrive on it
  std::vector<std::string> alerts;  // handed_alerts.hpp
};

class Takeover {
 public:
  // The environment variable with the number of the channel's descriptor.
  static constexpr const char* kVariable = "WEIR_UPGRADE_FD";

  // Returns null if no process hands over. Must be called before the first thread starts, because it changes
  // the environment. Throws CannotStart if the inherited state cannot be understood.
  [[nodiscard]] static std::unique_ptr<Takeover> of_environment();

  [[nodiscard]] const CarriedState& carried_state() const noexcept { return carried_state_; }
  // Returns the inherited sockets of this configured address; none if the other weir did not listen there.
  // Returns each socket once.
  [[nodiscard]] std::vector<net::ListeningSocket> take_listeners(const base::Endpoint& address);
  [[nodiscard]] std::vector<net::ListeningSocket> take_admin(const base::Endpoint& address);
  // Closes the sockets that nobody took. remove_files_of_rest() then removes the files of unix sockets among
  // them. It must be called only when this process is the service.
  void close_rest();
  void remove_files_of_rest() noexcept;

  // Tells the running weir why this process cannot take over. Never throws.
  void fail(std::string_view why) noexcept;
  // Reports that all is ready, and waits for the states of limits. Throws CannotStart if the running weir
  // gave up.
  [[nodiscard]] InheritedState await_state();
  // Reports that the states are restored, and waits for the message to open. Returns as well if the other
  // process is gone, because then no process serves.
  void await_word_to_open(const limit::Restored& restored);
  // Reports that this process accepts connections, and which alerts it has. Waits until the service manager
  // knows the new main process.
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
  std::vector<std::string> files_;  // of unix listeners that nobody took
};

}  // namespace weir::upgrade
