// The new process's end of an upgrade: what it is given by the weir that started it, and the words they
// exchange until it serves. Belongs to the main thread, and waits; the other one keeps the deadlines, and
// ends this process where it is late.
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

namespace weir::app {

// What goes over beside sockets and counts.
struct Legacy {
  base::Duration clock{};      // net::Clock::offset()
  base::SipKey table, shared;  // policy::NamingKeys
  std::uint64_t upgraded = 0;  // times that it succeeded before, and failed
  std::uint64_t failed = 0;
};
[[nodiscard]] std::vector<std::string> lines_of(const Legacy& legacy);
// nullopt: it is not that, or of another protocol.
[[nodiscard]] std::optional<Legacy> legacy_of(const std::vector<std::string>& lines);

// How limits stand.
struct InheritedState {
  net::OwnedDescriptor file;      // handed_state.hpp
  std::vector<std::string> held;  // held_news.hpp
};

// From then on it is weir.
struct Succession {
  net::OwnedDescriptor channel;     // by which connections come
  std::vector<std::string> alerts;  // handed_alerts.hpp
};

class Takeover {
 public:
  // Names the descriptor of the channel in the environment of the new process.
  static constexpr const char* kVariable = "WEIR_UPGRADE_FD";

  // Null where nobody hands anything over. Before the first thread: it changes the environment. Throws
  // CannotStart where what is handed over is not to be understood.
  [[nodiscard]] static std::unique_ptr<Takeover> of_environment();

  [[nodiscard]] const Legacy& legacy() const noexcept { return legacy_; }
  // Sockets that listen on what is configured as this address; none: nobody did. Each is given once, so that
  // what nobody asks for is closed in the end.
  [[nodiscard]] std::vector<net::ListeningSocket> take_listeners(const base::Endpoint& address);
  [[nodiscard]] std::vector<net::ListeningSocket> take_admin(const base::Endpoint& address);
  // The unix listeners among those are the second's to remove: not before this process is weir.
  void close_rest();
  void remove_files_of_rest() noexcept;

  // Says why there will be nothing of it. Never throws.
  void fail(std::string_view why) noexcept;
  // Says that all is ready and waits for how limits stand. Throws CannotStart where the other gave it up.
  [[nodiscard]] InheritedState await_state();
  // Says that it has that, and waits for the word to open. Where the other is gone meanwhile, nobody else
  // serves.
  void await_word_to_open(const limit::Restored& restored);
  // Says that connections are taken, and which alerts there are; waits until the service manager knows whom
  // to listen to.
  [[nodiscard]] Succession await_succession(const std::vector<std::string>& voices);

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
  Legacy legacy_;
  std::vector<Inherited> inherited_;
  std::vector<std::string> files_;  // of unix listeners that nobody asked for
};

}  // namespace weir::app
