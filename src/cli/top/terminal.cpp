#include "cli/top/terminal.hpp"

#include <array>
#include <cerrno>
#include <iostream>
#include <stdexcept>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace weir::cli {

namespace {

// Returns true if the user has pressed a key that ends the view, or if standard input has ended.
bool key_ends() {
  constexpr char kControlC = 3, kControlD = 4;
  char key = 0;
  if (::read(STDIN_FILENO, &key, 1) <= 0) return true;
  return key == 'q' || key == 'Q' || key == kControlC || key == kControlD;
}

}  // namespace

BlockedSignals::BlockedSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int one : {SIGTERM, SIGHUP, SIGINT, SIGQUIT}) sigaddset(&held, one);
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  descriptor_ = net::OwnedDescriptor(::signalfd(-1, &held, SFD_CLOEXEC));
}

BlockedSignals::~BlockedSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Terminal::Terminal() {
  if (::isatty(STDOUT_FILENO) == 0)
    throw std::runtime_error("standard output is not a terminal; write --once for one frame");
  if (::tcgetattr(STDIN_FILENO, &before_) != 0)
    throw std::runtime_error(
        "standard input is not a terminal, so no key ends weir top; write --once for one frame");
  auto raw = before_;
  // Ctrl-C must arrive as a key press instead of a signal.
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  std::cout << "\x1b[?1049h\x1b[?25l" << std::flush;
}

Terminal::~Terminal() {
  std::cout << "\x1b[?25h\x1b[?1049l" << std::flush;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

bool Terminal::ends_within(std::chrono::milliseconds wait) const {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> watched{{{STDIN_FILENO, POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}}};
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    if (watched[1].revents != 0) return true;
    if (watched[0].revents != 0 && key_ends()) return true;
  }
}

Screen Terminal::screen() {
  winsize size{};
  Screen screen{.ansi = true};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    screen.width = size.ws_col;
    // Leaves one line of the terminal for the cursor.
    screen.height = size.ws_row > 0 ? size.ws_row - std::size_t{1} : screen.height;
  }
  return screen;
}

}  // namespace weir::cli
