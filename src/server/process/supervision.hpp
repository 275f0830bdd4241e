// Reports to the service manager when weir serves, reloads and stops, and that it is alive. Belongs to the
// main thread.
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
  // `log` outlives this object.
  Supervision(net::Executor control, const NotifyEnvironment& environment, log::Log& log);

  // Sends READY as soon as `accepts` returns true, and watches the loops of all workers. Does nothing without
  // a service manager. Must be called once.
  void start(std::vector<net::Executor> loops, std::function<bool()> accepts);
  // Must be called before and after a reload, whatever its result.
  void reloading();
  void ready();
  // Does the same with a status for the service manager to show.
  void ready(const std::string& status);
  // Reports that workers end from now on, within `drain`.
  void stopping(base::Duration drain);
  // Reports that another process serves from now on and speaks for the service.
  void hand_over(int process);

 private:
  void await_ready();

  Notify notify_;
  Heartbeat heartbeat_;
  net::Timer look_;
  std::function<bool()> accepts_;
};

}  // namespace weir::server
