// An upgrade from the old process's side. The old process starts its own binary again, hands over its
// listening sockets and the states of its limits, and ends. If a step fails, the old process continues to
// serve. upgrade_steps.hpp has the order of the steps. Belongs to the main thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/upgrade/handed_state.hpp"
#include "weir/upgrade/takeover.hpp"
#include "weir/upgrade/upgrade_channel.hpp"
#include "weir/upgrade/upgrade_steps.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <sys/types.h>

namespace weir::upgrade {

struct UpgradeReport {
  std::string fault;    // why the upgrade failed; empty if it succeeded
  pid_t successor = 0;  // process ID of the new process
  // How many keys were restored (`keys`), were lost because their rules had changed (`changed`), and were
  // lost because the new table had no room (`left_out`).
  std::uint64_t keys = 0, changed = 0, left_out = 0;
  base::Duration paused{0};  // how long the pause of decisions lasted until the handover
  [[nodiscard]] bool ok() const noexcept { return fault.empty(); }
};

// The sockets of one listener.
struct ListenerSockets {
  const char* word;          // "listener" or "admin"
  std::string address;       // address of the listener, as configured
  std::vector<int> sockets;  // open until Callbacks::hand_over is called
};

class Upgrade {
 public:
  using Done = std::function<void(const UpgradeReport&)>;

  // Functions of the program. An Upgrade calls them on the main thread.
  struct Callbacks {
    // Returns the state that the new process gets from Takeover::carried_state().
    std::function<CarriedState()> carried_state;
    // Returns the sockets of all listeners.
    std::function<std::vector<ListenerSockets>()> listener_sockets;
    // Stops deciding requests, then calls `done` on any thread.
    std::function<void(std::function<void()> done)> pause;
    std::function<void()> resume;  // makes the workers decide requests again
    // Returns the states of all keys. Called only between pause() and resume().
    std::function<base::Result<HandedState>()> state;
    std::function<void(pid_t)> announce;  // reports the new main process to the service manager
    // Stops this process's alerts. Returns the states of the alerts with these IDs (handed_alerts.hpp).
    std::function<std::vector<std::string>(const std::vector<std::string>& alert_ids)> alerts;
    // Called when the new process has become the main process. `channel`: the channel through which this
    // process sends its connections.
    std::function<void(const UpgradeReport&, net::OwnedDescriptor channel)> hand_over;
  };
  struct Timeouts {
    base::Duration start;  // time limit for the new process to become ready
    // Time limit from the call of Callbacks::pause until the new process serves. Meanwhile requests wait for
    // their decision. After the time limit, the upgrade fails, and this process decides requests again.
    base::Duration pause;
  };

  // `log` and the objects that `callbacks` uses must outlive this object.
  Upgrade(net::Executor control, Callbacks callbacks, log::Log& log);
  // Ends the new process unless it has taken over. If an upgrade is still under way, does not call its
  // `done`.
  ~Upgrade();
  Upgrade(const Upgrade&) = delete;
  Upgrade& operator=(const Upgrade&) = delete;

  // Starts an upgrade. Calls `done` on the main thread with the result; `done` may be empty. If an upgrade is
  // already under way, `done` gets the result of that upgrade. Throws boost::system::system_error if epoll
  // does not accept the channel.
  void begin(const Timeouts& bounds, Done done);
  // Makes the upgrade that is under way fail. Must be called when weir stops.
  void abandon();
  [[nodiscard]] bool is_under_way() const noexcept { return stage_ != UpgradeStage::Idle; }

  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }

 private:
  using Clock = std::chrono::steady_clock;

  void note(UpgradeEvent event, std::string why = {});
  void perform(UpgradeAction act, std::string why);
  void start();
  [[nodiscard]] bool send_listeners(int channel);
  void await_continue();
  void read_words();
  void handle(const UpgradeMessage& message);
  void count_restored(const std::vector<std::string>& lines);
  void be_late_after(base::Duration bound, const char* at_what);
  void send_state();
  void hand_over();
  void give_up(std::string why);
  void finish(const UpgradeReport& report);

  net::Executor control_;
  const Callbacks callbacks_;
  log::Log& log_;
  net::asio::posix::basic_stream_descriptor<net::Executor> channel_;  // open only during an upgrade
  net::Timer deadline_;
  Timeouts bounds_{};
  UpgradeStage stage_ = UpgradeStage::Idle;
  UpgradeReport report_;
  Clock::time_point paused_at_;
  std::vector<std::string> alert_ids_;  // the IDs (AlertState::alert_id) of the new process's alerts
  std::vector<Done> done_;
  std::uint64_t attempt_ = 0;
  std::uint64_t failed_ = 0;
};

}  // namespace weir::upgrade
