// The access log: one line of JSON for each finished request, written by a separate thread.
//
//   AccessLogLines (one a worker) ─► batch of lines ─► AccessLog (one a process): bounded queue ─► thread ─►
//   file
//
// server::Program owns the AccessLog, and each worker thread owns its AccessLogLines. A worker formats lines
// into its buffer. The worker passes the buffer to the queue when the buffer is full or kMaxWait has passed,
// because each transfer costs a lock, a copy and often a wake-up. If the disk or the reader of a pipe is too
// slow, the queue fills. The log then drops batches and counts their lines, so that the log never blocks a
// worker. The log also counts lines that could not be written because the disk was full.
//
// To rotate the log, rename the file and send SIGUSR1. The writing thread then opens a new file with the old
// name. Lines in the queue are written to the old or the new file, and no line is lost.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/observe/access_record.hpp"
#include "weir/observe/counters.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace weir::log {

class AccessLog {
 public:
  using Report = std::function<void(const std::string&)>;

  // `target`: the name of a file, "-" for standard output, or "off". The file's folder must exist; lines are
  // appended to the file. `report`: called on the writing thread with messages about failed writes, one line
  // each. Throws std::runtime_error if the file cannot be opened or no thread can be started. The message
  // about a file has its name.
  AccessLog(const std::string& target, Report report, observe::LogFields fields = observe::LogFields::usual(),
            std::size_t max_batches = kMaxBatches);
  // Writes the queued lines. Every AccessLogLines of this log must be destroyed before the log.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  static constexpr std::size_t kMaxBatches = 256;

  // Returns why this process cannot open the file `target`, or an empty text if it can open the file. Creates
  // and changes no file.
  [[nodiscard]] static std::string fault_of(const std::string& target);

  [[nodiscard]] bool is_on() const noexcept { return impl_ != nullptr; }
  // Passes whole lines to the writing thread. Returns false and writes nothing if the queue is full. Returns
  // true and writes nothing if the log is off. May be called by any thread.
  [[nodiscard]] bool write(std::string_view lines);
  // Passes whole lines to the writing thread. If the queue is full, drops the lines and counts them in
  // lost().
  void write_or_lose(std::string_view lines);
  [[nodiscard]] const observe::LogFields& fields() const noexcept { return fields_; }
  // Must be called when the key table starts empty. The next line with the field "replay" then says that a
  // run begins. At such a line, `weir replay` starts with empty counters.
  void begin_run() noexcept { unbegun_ = true; }
  // Returns true once after each begin_run(). The caller must then write in its next line that a run begins.
  // May be called by any thread.
  [[nodiscard]] bool begins_run() noexcept {
    return unbegun_.load(std::memory_order_relaxed) && unbegun_.exchange(false);
  }
  // Returns the number of lost lines: lines that write() accepted but the thread could not write, and lines
  // that write_or_lose() dropped. May be called by any thread.
  [[nodiscard]] std::uint64_t lost() const noexcept;
  // Makes the writing thread open the file again by its name before it writes later lines. If the file cannot
  // be opened, reports the error and keeps the old file. May be called by any thread.
  void reopen();

 private:
  struct Impl;
  observe::LogFields fields_;
  std::unique_ptr<Impl> impl_;  // null if the log is off
  std::atomic<bool> unbegun_{false};
};

// One worker's buffer for lines of the access log.
class AccessLogLines final : public observe::AccessSink {
 public:
  static constexpr std::size_t kBatchBytes = 32 << 10;
  static constexpr base::Duration kMaxWait{100'000};

  // `log` and `counters` must outlive this object. Belongs to the thread of `executor`. Must be destroyed
  // after the thread's event loop has ended.
  AccessLogLines(AccessLog& log, net::Executor executor, observe::Counters& counters);
  ~AccessLogLines() override;  // passes the remaining lines to the log
  AccessLogLines(const AccessLogLines&) = delete;
  AccessLogLines& operator=(const AccessLogLines&) = delete;

  void record(const observe::AccessRecord& record) override;
  [[nodiscard]] observe::LogFields fields() const noexcept override { return log_.fields(); }
  void flush();

 private:
  void flush_later();

  AccessLog& log_;
  observe::Counters& counters_;
  net::Timer timer_;
  std::string lines_;
  std::size_t count_ = 0;  // number of lines in lines_
  bool waiting_ =
      false;  // true: timer_ runs, even if the lines for which it was started were passed on already
};

}  // namespace weir::log
