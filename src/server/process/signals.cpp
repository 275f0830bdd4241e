#include "weir/server/signals.hpp"

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <sys/signalfd.h>
#include <unistd.h>

namespace weir::server {

namespace {

int hold_back(std::initializer_list<int> which) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : which) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const int fd = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) throw std::system_error(errno, std::system_category(), "signalfd");
  return fd;
}

}  // namespace

Signals::Signals(const net::Executor& executor, std::initializer_list<int> which)
    : descriptor_(executor, hold_back(which)) {}

void Signals::listen(std::function<void(int)> handler) {
  handler_ = std::move(handler);
  await_next();
}

void Signals::await_next() {
  descriptor_.async_wait(net::asio::posix::descriptor_base::wait_read, [this](const net::ErrorCode& error) {
    if (error) return;
    read_all();
    await_next();
  });
}

void Signals::read_all() {
  signalfd_siginfo signal{};
  while (::read(descriptor_.native_handle(), &signal, sizeof signal) == sizeof signal)
    handler_(static_cast<int>(signal.ssi_signo));
}

}  // namespace weir::server
