// What weir has to do with the service manager that started it: says when it serves, reads anew and stops,
// and that it lives. Belongs to the main thread.
#pragma once

#include "server/process/heartbeat.hpp"
#include "server/process/notify.hpp"

#include "weir/log/log.hpp"

#include <functional>
#include <string>
#include <vector>

namespace weir::app {

class Supervision {
 public:
  // `log` outlives it.
  Supervision(net::Executor control, const NotifyEnvironment& environment, Log& log);

  // `loops`: those of all workers. Says READY as soon as `accepts`. Once; nothing where nobody listens.
  void start(std::vector<net::Executor> loops, std::function<bool()> accepts);
  // Around what SIGHUP does, however that ends.
  void reloading();
  void ready();
  // Likewise, and what its service manager shows of it.
  void ready(const std::string& status);
  // Workers end from now on, within `drain`.
  void stopping(base::Duration drain);
  // Another process serves from now on, and speaks for the service.
  void hand_over(int process);

 private:
  void await_ready();

  Notify notify_;
  Heartbeat heartbeat_;
  net::Timer look_;
  std::function<bool()> accepts_;
};

}  // namespace weir::app
