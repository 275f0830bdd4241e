// The access log: a line of JSON for every request that ended, written by a thread of its own.
//
//   AccessLogLines (one a worker) ──batch of lines──► AccessLog (one a process): bounded queue ─► thread ─►
//   file
//
// A worker formats lines into its buffer and hands the buffer on when it is full or has been waiting for
// kMaxWait: handing over costs a lock, a copy and often a wake-up, which a single line is not worth. When the
// disk or the reader of a pipe does not keep up, the queue fills, and batches are dropped and their lines
// counted: logging never stops a worker. So are lines that cannot be written, on a disk that is full.
//
// Rotation: the file is renamed, then weir is told (SIGUSR1). What the queue holds goes to the old file or to
// the new one, and nothing is lost in between: the thread that writes is the one that opens.
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

namespace weir::app {

class AccessLog {
 public:
  using Say = std::function<void(const std::string&)>;

  // `target`: a file (appended to, its folder must exist), "-" standard output, or "off". `say`: takes what
  // is to be known of the writing, a line each, on the thread that writes.
  // Throws std::runtime_error that names the file when it cannot be opened.
  AccessLog(const std::string& target, Say say, observe::LogFields fields = observe::LogFields::usual(),
            std::size_t max_batches = kMaxBatches);
  // Writes what is in the queue. Every AccessLogLines of it has gone before.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  static constexpr std::size_t kMaxBatches = 256;

  // Why such a file could not be opened by this process; empty: it could. Makes and changes nothing.
  [[nodiscard]] static std::string fault_of(const std::string& target);

  [[nodiscard]] bool is_on() const noexcept { return impl_ != nullptr; }
  // Hands whole lines to the writing thread. False, and nothing taken, when the queue is full. Any thread.
  [[nodiscard]] bool write(std::string_view lines);
  // Likewise, of whoever keeps no count: where the queue is full they are lost.
  void write_or_lose(std::string_view lines);
  [[nodiscard]] const observe::LogFields& fields() const noexcept { return fields_; }
  // The table that lines of the field "replay" tell of begins empty: the first of them is to say so.
  void begin_run() noexcept { unbegun_ = true; }
  // Whether that is to be said now; true once. Any thread.
  [[nodiscard]] bool begins_run() noexcept {
    return unbegun_.load(std::memory_order_relaxed) && unbegun_.exchange(false);
  }
  // Lines that could not be written, though they were taken. Any thread.
  [[nodiscard]] std::uint64_t lost() const noexcept;
  // The file is opened anew by its name, before what is handed over from now on is written. Where it cannot
  // be, the old one goes on, and that is said. Any thread.
  void reopen();

 private:
  struct Impl;
  observe::LogFields fields_;
  std::unique_ptr<Impl> impl_;  // null: off
  std::atomic<bool> unbegun_{false};
};

// One worker's end of the log.
class AccessLogLines final : public observe::AccessSink {
 public:
  static constexpr std::size_t kBatchBytes = 32 << 10;
  static constexpr base::Duration kMaxWait{100'000};

  // `log` and `counters` outlive it; it belongs to the thread of `executor`, and goes once that loop has
  // ended.
  AccessLogLines(AccessLog& log, net::Executor executor, observe::Counters& counters);
  ~AccessLogLines() override;  // hands on what is left
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
  std::size_t count_ = 0;  // of lines in it
  bool waiting_ = false;   // for the timer; a batch that was handed on early leaves it running
};

}  // namespace weir::app
