// The process log: messages for operators, one line each on standard error. access_log.hpp is the log of
// requests.
//
//   2026-02-20T10:00:00.123Z warning redis cache:6379 is down: connection refused
//
// Any thread may write. The log drops lines above kMaxPerSecond and writes their number in one line. So a
// fault that repeats with every request cannot flood the log.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace weir::log {

enum class LogLevel : std::uint8_t { Trace, Debug, Info, Warning, Error, Off };

class Log {
 public:
  static constexpr unsigned kMaxPerSecond = 100;

  explicit Log(LogLevel level);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Sets the level from now on. Any thread.
  void set_level(LogLevel level);

  // Writes a line. Replaces control characters by \xNN, so that a message stays on one line.
  void write(LogLevel level, std::string_view message);
  // Does the same without the bound of kMaxPerSecond. For actions of operators and their results.
  void write_always(LogLevel level, std::string_view message);
  // Does the same without the bound and at any level, even "off". Records which person was allowed to do
  // what. The line has the level "warning".
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
