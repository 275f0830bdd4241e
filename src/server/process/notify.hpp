// Reports to the service manager by the protocol of sd_notify(3): sends datagrams to the socket that
// $NOTIFY_SOCKET names. The name is a path, or '@' and an abstract name. If the variable is not set, all
// calls do nothing.
//
// Supervision owns the object, which belongs to the main thread and never blocks. If a message cannot be
// delivered, weir logs one line and otherwise ignores the failure. So no request depends on the service
// manager.
#pragma once

#include "weir/base/time.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace weir::server {

// The environment variables that the service manager sets.
struct NotifyEnvironment {
  const char* socket = nullptr;         // NOTIFY_SOCKET; null if it is not set
  const char* watchdog_usec = nullptr;  // WATCHDOG_USEC; null if it is not set
  const char* watchdog_pid = nullptr;   // WATCHDOG_PID; null if it is not set
};
[[nodiscard]] NotifyEnvironment notify_environment();

class Notify {
 public:
  // Calls `fault` at most once, with a text that describes a fault of the environment variables or of the
  // socket.
  Notify(const NotifyEnvironment& environment, std::function<void(const std::string&)> fault);

  // Returns the longest time that the service manager allows between two calls of alive(). Callers should
  // call alive() twice in this time. Returns zero if the service manager expects no calls.
  [[nodiscard]] base::Duration watchdog() const noexcept { return watchdog_; }
  [[nodiscard]] bool is_on() const noexcept { return !name_.empty(); }

  // Reports that the listeners accept connections. Must be called after the start and after each reload.
  // `status`: a short sentence for `systemctl status`.
  void ready(std::string_view status);
  void reloading();
  // Reports that weir is stopping. `longest`: the longest time that stopping takes. The service manager waits
  // this long, even beyond its usual limit.
  void stopping(std::string_view status, base::Duration longest);
  // Reports the process ID of the new main process. Afterwards the service manager ignores messages of this
  // process.
  void main_process(int number);
  void status(std::string_view status);
  void alive();

 private:
  void read_watchdog(const NotifyEnvironment& environment);
  void send(const std::string& text);
  void complain(const std::string& what);

  std::string name_;  // the form of sockaddr_un::sun_path: an abstract name begins with NUL
  base::Duration watchdog_{0};
  std::function<void(const std::string&)> fault_;
};

}  // namespace weir::server
