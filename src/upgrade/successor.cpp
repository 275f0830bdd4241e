#include "upgrade/successor.hpp"

#include "weir/upgrade/takeover.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weir::upgrade {

namespace {

constexpr int kChannel = STDERR_FILENO + 1;  // number of the channel's descriptor in the new process

// Returns this process's arguments, read from /proc/self/cmdline, where each argument ends with NUL.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\0', at), text.size());
    arguments.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return arguments;
}

// Returns the environment without WATCHDOG_PID, because that variable contains the process ID of this
// process.
std::vector<std::string> environment_for_successor() {
  std::vector<std::string> environment;
  const auto is_of = [](std::string_view entry, std::string_view name) {
    return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
  };
  for (char** entry = ::environ; *entry != nullptr; ++entry)
    if (!is_of(*entry, "WATCHDOG_PID") && !is_of(*entry, Takeover::kVariable))
      environment.emplace_back(*entry);
  environment.emplace_back(Takeover::kVariable).append("=").append(std::to_string(kChannel));
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// Attributes for posix_spawn(3). As in a usual start, the new process has no blocked signals, and SIGPIPE has
// its default action.
class Attributes {
 public:
  Attributes() {
    sigset_t none, standard;
    sigemptyset(&none);
    sigemptyset(&standard);
    sigaddset(&standard, SIGPIPE);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &standard);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  [[nodiscard]] const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

class Actions {
 public:
  explicit Actions(int channel) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, channel, kChannel);
    // Closes all other descriptors in the new process. Some lack close-on-exec, because the admin listener
    // uses Asio's accept, which does not set it. The new process would keep such connections open after this
    // process has closed them.
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, kChannel + 1);
  }
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

base::Result<pid_t> start_successor(int channel) {
  auto arguments = own_arguments();
  if (arguments.empty()) return base::Error{"/proc/self/cmdline is empty, so the command line is unknown"};
  auto environment = environment_for_successor();
  const auto argv = pointers(arguments);
  const auto envp = pointers(environment);
  const Attributes attributes;
  const Actions actions(channel);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], actions.get(), attributes.get(), argv.data(), envp.data());
  if (error != 0)
    return base::Error{"cannot start " + arguments[0] + ": " +
                       std::strerror(error)};  // NOLINT(concurrency-mt-unsafe): glibc's is thread-safe
  return pid;
}

bool has_ended(pid_t successor) noexcept {
  siginfo_t end{};
  return ::waitid(P_PID, static_cast<id_t>(successor), &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         end.si_pid != 0;
}

std::string end_successor(pid_t successor) {
  ::kill(successor, SIGKILL);  // has no effect if the process has already ended
  int status = 0;
  while (::waitpid(successor, &status, 0) < 0)
    if (errno != EINTR) return "the process no longer exists";
  if (WIFEXITED(status)) return "it exited with status " + std::to_string(WEXITSTATUS(status));
  return "it was killed by signal " + std::to_string(WTERMSIG(status));
}

}  // namespace weir::upgrade
