// The process log: what operators should know, one line each on standard error. Requests have a log of their
// own (access_log.hpp).
//
//   2026-02-20T10:00:00.123Z warning redis cache:6379 is down: connection refused
//
// Any thread may write. Lines beyond kMaxPerSecond are left out, and counted in a line of their own: a fault
// that repeats with every request must not become a second fault.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace weir::app {

enum class LogLevel : std::uint8_t { Trace, Debug, Info, Warning, Error, Off };

class Log {
 public:
  static constexpr unsigned kMaxPerSecond = 100;

  explicit Log(LogLevel level);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // From now on. Any thread.
  void set_level(LogLevel level);

  // Control characters come out as \xNN, so that a message stays one line whatever it quotes.
  void write(LogLevel level, std::string_view message);
  // Likewise, whatever the bound of kMaxPerSecond leaves out: for what an operator did, and what came of it.
  void write_always(LogLevel level, std::string_view message);
  // Likewise, and whatever the level leaves out, "off" included: what somebody was let do, and who. Stands
  // there as a warning.
  void audit(std::string_view message);

  void debug(std::string_view message) { write(LogLevel::Debug, message); }
  void info(std::string_view message) { write(LogLevel::Info, message); }
  void warning(std::string_view message) { write(LogLevel::Warning, message); }
  void error(std::string_view message) { write(LogLevel::Error, message); }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::app
