// Reports to the service manager when weir serves, reloads and stops, and that weir is alive. Program owns
// the object, which belongs to the main thread.
#pragma once

#include "server/process/heartbeat.hpp"
#include "server/process/notify.hpp"

#include "weir/log/log.hpp"

#include <functional>
#include <string>
#include <vector>

namespace weir::server {

class Supervision {
 public:
  // `log` must outlive this object.
  Supervision(net::Executor control, const NotifyEnvironment& environment, log::Log& log);

  // Reports READY as soon as `accepts` returns true, and watches the event loops of all workers. Does nothing
  // if there is no service manager. Must be called once.
  void start(std::vector<net::Executor> loops, std::function<bool()> accepts);
  // reloading() must be called before a reload, and ready() after it, even if the reload fails.
  void reloading();
  void ready();
  // Reports that weir is ready, with a status text for the service manager to show.
  void ready(const std::string& status);
  // Reports that weir is stopping, and stops watching the event loops of the workers. `drain`: the longest
  // time until the workers end.
  void stopping(base::Duration drain);
  // Reports that weir is stopping, but serves for `delay` before the drain. Still watches the event loops
  // of the workers.
  void stopping_after(base::Duration delay, base::Duration drain);
  // Reports that the process with the ID `process` is the main process from now on.
  void hand_over(int process);

 private:
  void await_ready();

  Notify notify_;
  Heartbeat heartbeat_;
  net::Timer watch_timer_;
  std::function<bool()> accepts_;
};

}  // namespace weir::server
