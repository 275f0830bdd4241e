// The access log: one line of JSON for each finished request, written by a separate thread.
//
//   AccessLogLines (one a worker) ─► batch of lines ─► AccessLog (one a process): bounded queue ─► thread ─►
//   file
//
// A worker formats lines into its buffer. It passes the buffer on when the buffer is full or kMaxWait has
// passed, because each transfer costs a lock, a copy and often a wake-up. If the disk or the reader of a pipe
// is too slow, the queue fills. The log then drops batches and counts their lines, so that it never blocks a
// worker. It also counts lines that a full disk rejects.
//
// For a rotation, rename the file and send SIGUSR1. The thread that writes also opens the new file. So the
// queued lines go to the old or the new file, and no line is lost.
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
  using Say = std::function<void(const std::string&)>;

  // `target`: a file, which is appended to and whose folder must exist; "-" for standard output; or "off".
  // `say` receives messages about the writing, one line each, on the thread that writes. Throws
  // std::runtime_error that names the file if it cannot be opened.
  AccessLog(const std::string& target, Say say, observe::LogFields fields = observe::LogFields::usual(),
            std::size_t max_batches = kMaxBatches);
  // Writes the queued lines. Every AccessLogLines of this log must be destroyed before.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  static constexpr std::size_t kMaxBatches = 256;

  // Returns the reason why this process cannot open such a file; empty if it can. Creates and changes
  // nothing.
  [[nodiscard]] static std::string fault_of(const std::string& target);

  [[nodiscard]] bool is_on() const noexcept { return impl_ != nullptr; }
  // Passes whole lines to the writing thread. Returns false and takes nothing if the queue is full. Any
  // thread.
  [[nodiscard]] bool write(std::string_view lines);
  // Does the same for callers without a counter. If the queue is full, the lines are lost.
  void write_or_lose(std::string_view lines);
  [[nodiscard]] const observe::LogFields& fields() const noexcept { return fields_; }
  // Must be called when the key table starts empty. The next line with the field "replay" then says so.
  void begin_run() noexcept { unbegun_ = true; }
  // Returns true once after begin_run(): the caller's line must say that a run begins. Any thread.
  [[nodiscard]] bool begins_run() noexcept {
    return unbegun_.load(std::memory_order_relaxed) && unbegun_.exchange(false);
  }
  // Returns the number of lines that were accepted but could not be written. Any thread.
  [[nodiscard]] std::uint64_t lost() const noexcept;
  // Opens the file again by its name, before later lines are written. If that fails, reports it and keeps the
  // old file. Any thread.
  void reopen();

 private:
  struct Impl;
  observe::LogFields fields_;
  std::unique_ptr<Impl> impl_;  // null: off
  std::atomic<bool> unbegun_{false};
};

// One worker's buffer for the log.
class AccessLogLines final : public observe::AccessSink {
 public:
  static constexpr std::size_t kBatchBytes = 32 << 10;
  static constexpr base::Duration kMaxWait{100'000};

  // `log` and `counters` outlive this object. Belongs to the thread of `executor`. Must be destroyed after
  // its loop has ended.
  AccessLogLines(AccessLog& log, net::Executor executor, observe::Counters& counters);
  ~AccessLogLines() override;  // passes on the remaining lines
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
  bool waiting_ = false;   // the timer runs; it keeps running after an early transfer
};

}  // namespace weir::log
