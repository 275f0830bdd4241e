// Reports to the service manager by the protocol of sd_notify(3). It sends datagrams to the socket of
// $NOTIFY_SOCKET: a path, or '@' and an abstract name. Without the variable all calls do nothing.
//
// Belongs to the main thread and never blocks. A message that cannot be delivered causes one log line and is
// otherwise ignored, so that no request depends on it.
#pragma once

#include "weir/base/time.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace weir::server {

// The variables of the process environment.
struct NotifyEnvironment {
  const char* socket = nullptr;         // NOTIFY_SOCKET; null: absent
  const char* watchdog_usec = nullptr;  // WATCHDOG_USEC
  const char* watchdog_pid = nullptr;   // WATCHDOG_PID
};
[[nodiscard]] NotifyEnvironment notify_environment();

class Notify {
 public:
  // Calls `fault` once with a description of what is wrong with the environment or the socket.
  Notify(const NotifyEnvironment& environment, std::function<void(const std::string&)> fault);

  // Returns the longest time that the manager allows between two calls of alive(). Callers should call it
  // twice as often. Zero: the manager expects no calls.
  [[nodiscard]] base::Duration watchdog() const noexcept { return watchdog_; }
  [[nodiscard]] bool is_on() const noexcept { return !name_.empty(); }

  // Reports that listeners accept, after a start or a reload. `status`: a short sentence for `systemctl
  // status`.
  void ready(std::string_view status);
  void reloading();
  // `longest`: the longest time that stopping takes. The manager waits that long, beyond its usual limit.
  void stopping(std::string_view status, base::Duration longest);
  // Reports that another process is the service from now on. The manager ignores later messages of this
  // process.
  void main_process(int number);
  void status(std::string_view status);
  void alive();

 private:
  void read_watchdog(const NotifyEnvironment& environment);
  void send(const std::string& text);
  void complain(const std::string& what);

  std::string name_;  // in the form of sun_path: an abstract name begins with NUL
  base::Duration watchdog_{0};
  std::function<void(const std::string&)> fault_;
};

}  // namespace weir::server
