// What a service manager is told by the protocol of sd_notify(3): datagrams to the socket that $NOTIFY_SOCKET
// names, a path or, with '@', an abstract name. Without one all calls do nothing. Belongs to the main thread;
// nothing here waits, and what cannot be delivered is said once and otherwise ignored: nobody's request hangs
// on it.
#pragma once

#include "weir/base/time.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace weir::app {

// What the environment of a process says.
struct NotifyEnvironment {
  const char* socket = nullptr;         // NOTIFY_SOCKET; null: absent
  const char* watchdog_usec = nullptr;  // WATCHDOG_USEC
  const char* watchdog_pid = nullptr;   // WATCHDOG_PID
};
[[nodiscard]] NotifyEnvironment notify_environment();

class Notify {
 public:
  // `fault` is told in words what is wrong with the environment or with the socket, once.
  Notify(const NotifyEnvironment& environment, std::function<void(const std::string&)> fault);

  // How often the manager wants to hear alive(); zero: never. Twice as often is as it should be.
  [[nodiscard]] base::Duration watchdog() const noexcept { return watchdog_; }
  [[nodiscard]] bool is_on() const noexcept { return !name_.empty(); }

  // Listeners accept, after a start or a reload. `status`: a short sentence for `systemctl status`.
  void ready(std::string_view status);
  void reloading();
  // `longest`: how long the rest takes at most, however little time the manager gives to others.
  void stopping(std::string_view status, base::Duration longest);
  // The service is another process from now on; nothing that this one says counts after it.
  void main_process(int number);
  void status(std::string_view status);
  void alive();

 private:
  void read_watchdog(const NotifyEnvironment& environment);
  void send(const std::string& text);
  void complain(const std::string& what);

  std::string name_;  // as sun_path has it: an abstract one begins with NUL
  base::Duration watchdog_{0};
  std::function<void(const std::string&)> fault_;
};

}  // namespace weir::app
