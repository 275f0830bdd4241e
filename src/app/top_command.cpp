#include "app/top_command.hpp"

#include "app/ask_admin.hpp"
#include "app/top_frame.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <stdexcept>
#include <thread>

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace weir::app {

namespace {

constexpr std::chrono::seconds kRefresh{1};

AdminReply ask(const TopOptions& options, const std::string& target) {
  auto reply = ask_admin({.address = options.admin,
                          .token = std::string(options.token),
                          .target = target,
                          .patience = std::chrono::seconds(2)});
  if (reply.status == 401) throw std::runtime_error("it asks for another token: --token, or --config");
  return reply;
}

Sample take(const TopOptions& options) {
  Sample sample;
  const auto metrics = ask(options, "/metrics");
  if (metrics.status != 200) throw std::runtime_error("/metrics answers " + std::to_string(metrics.status));
  sample.taken = std::chrono::steady_clock::now();
  sample.figures = Figures(metrics.body);
  const auto top = ask(options, "/api/top?n=" + std::to_string(options.clients));
  sample.top_is_on = top.status == 200;
  if (sample.top_is_on) sample.top = read_top(top.body);
  if (!sample.top_is_on && top.status != 404)
    throw std::runtime_error("/api/top answers " + std::to_string(top.status));
  return sample;
}

// Keys come as they are pressed, on a screen of its own; given back on the way out.
class Terminal {
 public:
  Terminal() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0)
      throw std::runtime_error("no terminal here: ask --once for one frame");
    auto raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);  // Ctrl-C comes as a key as well
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    std::cout << "\x1b[?1049h\x1b[?25l" << std::flush;
  }
  ~Terminal() {
    std::cout << "\x1b[?25h\x1b[?1049l" << std::flush;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // True when it was told to end before the time is over.
  static bool ends_within(std::chrono::milliseconds wait) {
    const auto deadline = std::chrono::steady_clock::now() + wait;
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&input, 1, static_cast<int>(left.count())) == 0) return false;
      constexpr char kControlC = 3, kControlD = 4;
      char key = 0;
      if (::read(STDIN_FILENO, &key, 1) <= 0) return true;
      if (key == 'q' || key == 'Q' || key == kControlC || key == kControlD) return true;
    }
  }

  static Screen screen() {
    winsize size{};
    Screen screen{.ansi = true};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
      screen.width = size.ws_col;
      screen.height =
          size.ws_row > 0 ? size.ws_row - std::size_t{1} : screen.height;  // the cursor has a line
    }
    return screen;
  }

 private:
  termios before_{};
};

void show_once(const TopOptions& options) {
  const auto before = take(options);
  std::this_thread::sleep_for(kRefresh);
  winsize size{};
  Screen screen{.height = 0};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) screen.width = size.ws_col;
  std::cout << draw(before, take(options), options.admin.to_string(), screen) << std::flush;
}

void show_live(const TopOptions& options) {
  auto before = take(options);
  const Terminal terminal;
  do {
    auto now = take(options);
    std::cout << "\x1b[H" << draw(before, now, options.admin.to_string(), Terminal::screen()) << "\x1b[J"
              << std::flush;
    before = std::move(now);
  } while (!Terminal::ends_within(kRefresh));
}

}  // namespace

int run_top(const TopOptions& options) {
  try {
    if (options.once)
      show_once(options);
    else
      show_live(options);
    return 0;
  } catch (const std::runtime_error& error) {
    std::cerr << "weir: " << options.admin.to_string() << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace weir::app
