#include "server/process/notify.hpp"

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace weir::server {

namespace {

constexpr std::size_t kLongestName = sizeof(sockaddr_un::sun_path) - 1;

template <class Number>
bool parse(const char* text, Number& number) {
  const auto* end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end;
}

// Returns the time in microseconds of CLOCK_MONOTONIC, which is the clock that the service manager uses.
std::string monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::to_string(now.tv_sec * 1'000'000 + now.tv_nsec / 1'000);
}

}  // namespace

NotifyEnvironment notify_environment() {
  // NOLINTBEGIN(concurrency-mt-unsafe): no thread changes environment variables
  return {std::getenv("NOTIFY_SOCKET"), std::getenv("WATCHDOG_USEC"), std::getenv("WATCHDOG_PID")};
  // NOLINTEND(concurrency-mt-unsafe)
}

Notify::Notify(const NotifyEnvironment& environment, std::function<void(const std::string&)> fault)
    : fault_(std::move(fault)) {
  if (environment.socket == nullptr || *environment.socket == '\0') return;
  const std::string_view name = environment.socket;
  if ((name.front() != '/' && name.front() != '@') || name.size() < 2 || name.size() > kLongestName) {
    complain("NOTIFY_SOCKET is neither a path nor '@' and a name, of at most " +
             std::to_string(kLongestName) + " bytes; weir sends the service manager no messages");
    return;
  }
  name_ = name;
  if (name_.front() == '@') name_.front() = '\0';
  read_watchdog(environment);
}

void Notify::read_watchdog(const NotifyEnvironment& environment) {
  if (environment.watchdog_usec == nullptr) return;
  std::int64_t micros = 0;
  pid_t meant = ::getpid();
  if (!parse(environment.watchdog_usec, micros) || micros <= 0 ||
      (environment.watchdog_pid != nullptr && !parse(environment.watchdog_pid, meant)))
    return complain("WATCHDOG_USEC or WATCHDOG_PID is not a number; weir sends no watchdog messages");
  if (meant == ::getpid()) watchdog_ = base::Duration(micros);
}

// Sends only the first line of the status, because the service manager would read further lines as fields.
void Notify::ready(std::string_view status) {
  send("READY=1\nSTATUS=" + std::string(status.substr(0, status.find('\n'))));
}

void Notify::reloading() {
  send("RELOADING=1\nMONOTONIC_USEC=" + monotonic_now() + "\nSTATUS=reloading the configuration");
}

void Notify::stopping(std::string_view status, base::Duration longest) {
  send("STOPPING=1\nSTATUS=" + std::string(status) +
       "\nEXTEND_TIMEOUT_USEC=" + std::to_string(longest.count()));
}

void Notify::main_process(int number) {
  send("MAINPID=" + std::to_string(number));
}

void Notify::status(std::string_view status) {
  send("STATUS=" + std::string(status));
}

void Notify::alive() {
  send("WATCHDOG=1");
}

// Opens a new socket for each message, because the service manager may have replaced its socket at the path.
void Notify::send(const std::string& text) {
  if (!is_on()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name_.data(), name_.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return complain("cannot open a socket to the service manager: " + std::generic_category().message(errno));
  const auto sent = ::sendto(fd, text.data(), text.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&address), length);
  const int error = errno;
  ::close(fd);
  if (sent < 0)
    complain("cannot send a message to the service manager: " + std::generic_category().message(error));
}

// Reports only the first fault, because each heartbeat would report the same fault again.
void Notify::complain(const std::string& what) {
  if (fault_) std::exchange(fault_, nullptr)(what);
}

}  // namespace weir::server
