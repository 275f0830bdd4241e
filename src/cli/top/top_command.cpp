#include "cli/top/top_command.hpp"

#include "cli/admin_json.hpp"
#include "cli/ask_admin.hpp"
#include "cli/top/terminal.hpp"
#include "cli/top/top_frame.hpp"
#include "cli/top/top_json.hpp"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>

#include <sys/ioctl.h>
#include <unistd.h>

namespace weir::cli {

namespace {

constexpr std::chrono::seconds kRefresh{1};

AdminReply ask(const TopOptions& options, const std::string& target) {
  auto reply = ask_admin({.address = options.admin,
                          .token = std::string(options.token),
                          .target = target,
                          .patience = std::chrono::seconds(2)});
  if (reply.status == 401) throw std::runtime_error(why_unauthorized(options.token));
  return reply;
}

Sample take(const TopOptions& options) {
  Sample sample;
  const auto metrics = ask(options, "/metrics");
  if (metrics.status != 200) throw std::runtime_error("/metrics returns " + std::to_string(metrics.status));
  sample.taken = std::chrono::steady_clock::now();
  sample.figures = Figures(metrics.body);
  const auto top = ask(options, "/api/top?n=" + std::to_string(options.clients));
  sample.top_is_on = top.status == 200;
  if (sample.top_is_on) sample.top = read_top(top.body);
  if (sample.top_is_on) return sample;
  if (top.status != 404) throw std::runtime_error("/api/top returns " + std::to_string(top.status));
  sample.top = read_rules(ask(options, "/api/rules").body);
  return sample;
}

// Returns the width of a single frame: the variable COLUMNS if it is set, otherwise the terminal's width.
// If neither is known, lines have no bound.
std::size_t width_of_output() {
  if (const char* const text = std::getenv("COLUMNS"); text != nullptr) {
    const std::string_view columns(text);
    std::size_t width = 0;
    const auto parsed = std::from_chars(columns.data(), columns.data() + columns.size(), width);
    if (parsed.ec == std::errc{} && parsed.ptr == columns.data() + columns.size() && width > 0) return width;
  }
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return Screen::kUnbounded;
}

void show_once(const TopOptions& options) {
  const auto before = take(options);
  std::this_thread::sleep_for(kRefresh);
  const auto now = take(options);
  const auto address = options.admin.to_string();
  const Screen screen{.width = width_of_output(), .height = 0};
  std::cout << (options.json ? top_json(before, now, address) : draw(before, now, address, screen))
            << std::flush;
}

// Draws frames repeatedly. If weir is restarted between two frames, the counters of the new process begin at
// 0.
class LiveView {
 public:
  // Throws std::runtime_error if weir does not answer the first request.
  explicit LiveView(const TopOptions& options) : options_(options), before_(take(options)) {}

  std::string next(const Screen& screen) {
    const auto address = options_.admin.to_string();
    try {
      auto now = take(options_);
      auto frame = draw(absent_since_ ? now : before_, now, address, screen);
      before_ = std::move(now);
      absent_since_.reset();
      return frame;
    } catch (const std::runtime_error& error) {
      const auto now = std::chrono::steady_clock::now();
      if (!absent_since_) absent_since_ = now;
      const auto absent = std::chrono::floor<std::chrono::seconds>(now - *absent_since_);
      return draw_absence(absent, error.what(), address, screen);
    }
  }

 private:
  const TopOptions& options_;
  Sample before_;
  std::optional<std::chrono::steady_clock::time_point> absent_since_;
};

void show_live(const TopOptions& options) {
  LiveView view(options);
  const Terminal terminal;
  do std::cout << "\x1b[H" << view.next(Terminal::screen()) << "\x1b[J" << std::flush;
  while (!terminal.ends_within(kRefresh));
}

}  // namespace

int run_top(const TopOptions& options) {
  try {
    if (options.once || options.json)
      show_once(options);
    else
      show_live(options);
    return 0;
  } catch (const std::runtime_error& error) {
    std::cerr << "weir: " << options.admin.to_string() << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace weir::cli
