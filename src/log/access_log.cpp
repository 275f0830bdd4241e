#include "weir/log/access_log.hpp"

#include "log/log_file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <spdlog/async.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

namespace weir::log {

namespace {

// The free entries that the queue must have before a worker may write. A worker first checks for free entries
// and then writes. In between, each other worker may fill one entry. So with at most this many workers, no
// accepted line is overwritten.
constexpr std::size_t kMaxWriters = 256;

// Writes batches of lines to the file and counts lost lines. Reports when losses begin and when they end.
// Opens the file again on request. Used only by the writing thread, except where noted.
class LineSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  LineSink(const std::string& target, AccessLog::Report report) : file_(target), report_(std::move(report)) {}

  // May be called by any thread. The writing thread reopens the file before it writes again.
  void reopen_at_next() noexcept { wanted_ = true; }
  void lose(std::string_view lines) noexcept {
    lost_ += static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
  }
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

 private:
  static std::string reason(int error) { return std::generic_category().message(error); }

  void sink_it_(const spdlog::details::log_msg& message) override {
    if (wanted_.exchange(false)) reopen();
    if (message.payload.size() == 0) return;
    const auto end = file_.append({message.payload.data(), message.payload.size()});
    lost_ += end.lost;
    lost_in_a_row_ += end.lost;
    const bool failed = end.error != 0;
    if (std::exchange(failing_, failed) == failed) return;
    if (failed)
      return report_("access log: cannot write " + file_.name() + ": " + reason(end.error) +
                     "; lines are dropped and counted");
    report_("access log: writing again to " + file_.name() + "; " +
            std::to_string(std::exchange(lost_in_a_row_, 0)) + " lines were dropped");
  }
  void flush_() override {}

  void reopen() {
    if (const int error = file_.reopen(); error != 0)
      report_("access log: keeping the old file: " + file_.name() + " cannot be opened: " + reason(error));
  }

  LogFile file_;
  const AccessLog::Report report_;
  bool failing_ = false;
  std::uint64_t lost_in_a_row_ = 0;
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<bool> wanted_{false};
};

// Returns true if the log line of this record will have the members that `weir replay` needs.
bool tells_decision(const observe::AccessRecord& record) noexcept {
  const auto* replay = record.replay;
  return replay != nullptr && replay->evaluated_at != base::TimePoint{} && replay->closed.empty() &&
         !replay->cut;
}

}  // namespace

struct AccessLog::Impl {
  Impl(const std::string& target, std::size_t most, Report report)
      : max_batches(most),
        pool(std::make_shared<spdlog::details::thread_pool>(most + kMaxWriters, 1)),
        sink(std::make_shared<LineSink>(target, std::move(report))),
        logger(std::make_shared<spdlog::async_logger>("access", sink, pool,
                                                      spdlog::async_overflow_policy::overrun_oldest)) {}
  // Destroys the pool first. The pool's thread writes all queued lines and ends before the file is closed.
  ~Impl() { pool.reset(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::size_t max_batches;
  // These objects are shared: messages in spdlog's queue keep the logger alive, which refers to the pool and
  // keeps the sink alive.
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<LineSink> sink;
  std::shared_ptr<spdlog::async_logger> logger;
};

AccessLog::AccessLog(const std::string& target, Report report, observe::LogFields fields,
                     std::size_t max_batches)
    : fields_(fields) {
  if (target == "off") return;
  impl_ = std::make_unique<Impl>(target, max_batches, std::move(report));
}

AccessLog::~AccessLog() = default;

// Returns why weir cannot open the target; empty if it can. If the file does not exist, checks whether weir
// may create files in its folder, but does not create the file.
std::string AccessLog::fault_of(const std::string& target) {
  if (target == "-" || target == "off") return "";
  const int fd = ::open(target.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) {
    ::close(fd);
    return "";
  }
  if (errno == ENXIO) return "";  // the file is a pipe that nobody reads yet, which is no fault
  if (errno == ENOENT) {
    const auto folder = std::filesystem::path(target).parent_path();
    if (::faccessat(AT_FDCWD, folder.empty() ? "." : folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return "";
  }
  return target + " cannot be opened: " + std::generic_category().message(errno);
}

bool AccessLog::write(std::string_view lines) {
  if (!impl_) return true;
  if (impl_->pool->queue_size() >= impl_->max_batches) return false;
  impl_->logger->log(spdlog::level::info, spdlog::string_view_t(lines.data(), lines.size()));
  return true;
}

void AccessLog::write_or_lose(std::string_view lines) {
  if (!write(lines)) impl_->sink->lose(lines);
}

std::uint64_t AccessLog::lost() const noexcept {
  return impl_ ? impl_->sink->lost() : 0;
}

// Sets the flag that makes the writing thread reopen the file, and sends an empty batch to wake the thread.
// If the queue is full, the thread sees the flag before it writes the next batch.
void AccessLog::reopen() {
  if (!impl_) return;
  impl_->sink->reopen_at_next();
  (void)write("");
}

AccessLogLines::AccessLogLines(AccessLog& log, net::Executor executor, observe::Counters& counters)
    : log_(log), counters_(counters), timer_(executor) {
  if (log_.is_on()) lines_.reserve(kBatchBytes + (kBatchBytes >> 2));
}

AccessLogLines::~AccessLogLines() {
  flush();
}

void AccessLogLines::record(const observe::AccessRecord& record) {
  if (!log_.is_on()) return;
  if (tells_decision(record) && log_.begins_run()) {
    auto marked = *record.replay;
    marked.first = true;
    auto copy = record;
    copy.replay = &marked;
    observe::append_json(lines_, copy, log_.fields());
  } else {
    observe::append_json(lines_, record, log_.fields());
  }
  if (++count_ == 1) flush_later();
  if (lines_.size() >= kBatchBytes) flush();
}

void AccessLogLines::flush() {
  if (count_ == 0) return;
  if (!log_.write(lines_)) counters_.access_log_dropped.add(count_);
  lines_.clear();
  count_ = 0;
}

void AccessLogLines::flush_later() {
  if (waiting_) return;
  waiting_ = true;
  timer_.expires_after(kMaxWait);
  timer_.async_wait([this](net::ErrorCode ec) {
    if (ec) return;
    waiting_ = false;
    flush();
  });
}

}  // namespace weir::log
