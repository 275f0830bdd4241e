#include "cli/replay/replay_command.hpp"

#include "cli/exit_status.hpp"
#include "cli/replay/log_reader.hpp"
#include "cli/replay/replay_text.hpp"

#include "weir/replay/replay.hpp"

#include <chrono>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include <unistd.h>

namespace weir::cli {

namespace {

// Shows the progress on one line of standard error, at most ten times a second. Shows nothing if standard
// error is not a terminal.
class ProgressBar {
 public:
  ProgressBar() : shown_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressBar() {
    if (drawn_) std::cerr << "\r\x1b[K" << std::flush;
  }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `part`: the finished part of the work, from 0 to 1.
  void show(const char* doing, double part) {
    constexpr std::chrono::milliseconds kPause{100};
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now < next_) return;
    next_ = now + kPause;
    drawn_ = true;
    constexpr int kWidth = 40;
    const auto filled = static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * kWidth);
    std::cerr << '\r' << doing << " [" << std::string(filled, '#') << std::string(kWidth - filled, ' ')
              << "] " << std::setw(3) << static_cast<int>(part * 100) << " %\x1b[K" << std::flush;
  }

 private:
  bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_{};
};

replay::Report replay_files(const config::Settings& settings, const ReplayOptions& options) {
  ProgressBar progress;
  replay::Replay replayed({.rules = settings.rules,
                           .routes = settings.routes,
                           .client = settings.client,
                           .max_keys = settings.state.max_keys});
  const auto all = size_of_logs(options.files);
  std::uint64_t read = 0;
  for (const auto& file : options.files) {
    LogReader reader(file);
    while (const auto line = reader.next()) {
      replayed.add(*line);
      progress.show("reading  ",
                    all != 0 ? static_cast<double>(read + reader.consumed()) / static_cast<double>(all) : 0);
    }
    read += reader.consumed();
  }
  return replayed.run([&](double part) { progress.show("replaying", part); }, options.clients);
}

}  // namespace

int run_replay(const config::Settings& settings, const ReplayOptions& options) {
  if (const auto same = find_same_log(options.files)) {
    std::cerr << "weir: " << same->first << " and " << same->second
              << " are the same file, so each request would be counted twice; name it once\n";
    return kWrong;
  }
  try {
    const auto report = replay_files(settings, options);
    std::cout << (options.json ? to_json(report) : to_text(report)) << std::flush;
    if (report.requests != 0) return 0;
    std::cerr << "weir: no line could be used";
    if (report.unusable[static_cast<std::size_t>(replay::Unusable::NoReplay)] != 0)
      std::cerr << "; write the log with [log] fields = [\"usual\", \"replay\"]";
    std::cerr << '\n';
  } catch (const std::runtime_error& error) {
    std::cerr << "weir: " << error.what() << '\n';
  }
  return 1;
}

}  // namespace weir::cli
