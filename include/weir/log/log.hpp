// The process log: messages for operators, one line each, on standard error. Requests have their own log
// (access_log.hpp).
//
//   2026-02-20T10:00:00.123Z warning redis cache:6379 is down: connection refused
//
// server::Program owns the log. Any thread may write. At most kMaxPerSecond lines are written in a second.
// The log drops all other lines and then writes their number in one line, so an error that repeats with every
// request cannot flood the log.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace weir::log {

enum class LogLevel : std::uint8_t { Trace, Debug, Info, Warning, Error, Off };

class Log {
 public:
  static constexpr unsigned kMaxPerSecond = 100;

  // Throws std::system_error if no thread can be started.
  explicit Log(LogLevel level);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Sets the level of the log for later messages. May be called by any thread.
  void set_level(LogLevel level);

  // Writes one line. Replaces control characters with \xNN, so that the message stays on one line.
  void write(LogLevel level, std::string_view message);
  // Writes one line without the bound kMaxPerSecond. For actions of operators and the results of these
  // actions.
  void write_always(LogLevel level, std::string_view message);
  // Writes one line of level "warning". The line is written even if the level of the log is "off", and
  // without the bound kMaxPerSecond. For records of changes that operators make through the admin listener.
  void audit(std::string_view message);

  void debug(std::string_view message) { write(LogLevel::Debug, message); }
  void info(std::string_view message) { write(LogLevel::Info, message); }
  void warning(std::string_view message) { write(LogLevel::Warning, message); }
  void error(std::string_view message) { write(LogLevel::Error, message); }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::log
