// The running weir's end of an upgrade: it starts its own binary anew, hands over its listening sockets and
// how its limits stand, and ends; or, whatever goes wrong in between, goes on as it was. The order of it all
// is upgrade_steps.hpp's. Belongs to the main thread.
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

namespace weir::app {

struct UpgradeReport {
  std::string fault;    // empty: the new process serves
  pid_t successor = 0;  // its number
  // Whose state went over, did not because their rules changed, and found no room there.
  std::uint64_t keys = 0, changed = 0, left_out = 0;
  base::Duration paused{0};  // how long requests waited meanwhile, at most
  [[nodiscard]] bool ok() const noexcept { return fault.empty(); }
};

// Sockets that listen on an address.
struct Bequest {
  const char* word;          // "listener" or "admin"
  std::string address;       // as configured
  std::vector<int> sockets;  // which stay open as long as whoever bequeaths is not asked to end
};

class Upgrade {
 public:
  using Done = std::function<void(const UpgradeReport&)>;

  // What it asks of the program, on the main thread.
  struct House {
    std::function<Legacy()> legacy;
    std::function<std::vector<Bequest>()> bequests;
    std::function<void(std::function<void()> done)> pause;  // of decisions; `done` from any thread
    std::function<void()> resume;
    std::function<base::Result<HandedState>()> state;
    std::function<void(pid_t)> announce;  // to whoever supervises
    // Retires from alerts: of which the new process has, to how those stand (handed_alerts.hpp).
    std::function<std::vector<std::string>(const std::vector<std::string>& voices)> alerts;
    std::function<void(const UpgradeReport&, net::OwnedDescriptor channel)> hand_over;
  };
  struct Bounds {
    base::Duration start;  // from its start until the new process is ready
    base::Duration pause;  // of requests
  };

  // `log` and what `house` refers to outlive it.
  Upgrade(net::Executor control, House house, Log& log);
  // Ends a new process that has not taken over.
  ~Upgrade();
  Upgrade(const Upgrade&) = delete;
  Upgrade& operator=(const Upgrade&) = delete;

  // `done`: told on the main thread what came of it; may be empty. Whoever asks while one is under way is
  // told of that one.
  void begin(const Bounds& bounds, Done done);
  // Weir is to end: the one under way is given up.
  void abandon();
  [[nodiscard]] bool is_under_way() const noexcept { return stage_ != UpgradeStage::Idle; }

  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }

 private:
  using Clock = std::chrono::steady_clock;

  void note(UpgradeEvent event, std::string why = {});
  void perform(UpgradeAct act, std::string why);
  void start();
  [[nodiscard]] bool bequeath(int channel);
  void await_word();
  void read_words();
  void hear(const UpgradeMessage& message);
  void count_restored(const std::vector<std::string>& lines);
  void be_late_after(base::Duration bound, const char* at_what);
  void send_state();
  void hand_over();
  void give_up(std::string why);
  void finish(const UpgradeReport& report);

  net::Executor control_;
  const House house_;
  Log& log_;
  net::asio::posix::basic_stream_descriptor<net::Executor> channel_;  // open while one is under way
  net::Timer deadline_;
  Bounds bounds_{};
  UpgradeStage stage_ = UpgradeStage::Idle;
  UpgradeReport report_;
  Clock::time_point paused_at_;
  std::vector<std::string> voices_;  // of the new process's alerts
  std::vector<Done> told_;
  std::uint64_t attempt_ = 0;
  std::uint64_t failed_ = 0;
};

}  // namespace weir::app
