#include "weir/app/access_log.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <spdlog/async.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

namespace weir::app {

namespace {

// Between asking whether there is room and taking it, each other worker may take one place. So many may, and
// still nothing that was accepted is ever overwritten.
constexpr std::size_t kMaxWriters = 256;

// Lines come finished: nothing before them, and their own newline after them.
std::unique_ptr<spdlog::formatter> verbatim() {
  return std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::utc, "");
}

// A file that is appended to, and opened anew by its name when told. Written by one thread.
class FileSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  using Fault = std::function<void(const std::string&)>;

  explicit FileSink(std::string name) : name_(std::move(name)), file_(open(name_)) {
    if (!file_) throw std::runtime_error("access log: cannot open " + name_ + ": " + reason());
  }

  // Any thread.
  void reopen_at_next(Fault fault) {
    const std::lock_guard lock(mutex_);
    fault_ = std::move(fault);
    wanted_ = true;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  static File open(const std::string& name) { return File(std::fopen(name.c_str(), "ae")); }
  static std::string reason() { return std::generic_category().message(errno); }

  void sink_it_(const spdlog::details::log_msg& message) override {
    if (wanted_.exchange(false)) reopen();
    const auto size = message.payload.size();
    if (std::fwrite(message.payload.data(), 1, size, file_.get()) != size)
      throw spdlog::spdlog_ex("access log: cannot write to " + name_ + ": " + reason());
  }
  void flush_() override { std::fflush(file_.get()); }

  void reopen() {
    const std::lock_guard lock(mutex_);
    auto fresh = open(name_);
    if (fresh)
      file_ = std::move(fresh);
    else if (fault_)
      fault_("the access log stays with its old file: " + name_ + " cannot be opened: " + reason());
  }

  const std::string name_;
  File file_;
  std::mutex mutex_;  // of fault_
  Fault fault_;
  std::atomic<bool> wanted_{false};
};

}  // namespace

struct AccessLog::Impl {
  Impl(const std::string& target, std::size_t most)
      : max_batches(most),
        pool(std::make_shared<spdlog::details::thread_pool>(most + kMaxWriters, 1)),
        file(target == "-" ? nullptr : std::make_shared<FileSink>(target)),
        logger(std::make_shared<spdlog::async_logger>("access", sink(), pool,
                                                      spdlog::async_overflow_policy::overrun_oldest)) {
    logger->set_formatter(verbatim());
    logger->flush_on(
        spdlog::level::info);  // a batch is worth a write; nobody waits for the next to see the last
  }
  // The thread has written all and is joined before the file goes.
  ~Impl() { pool.reset(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] spdlog::sink_ptr sink() const {
    return file ? spdlog::sink_ptr(file) : std::make_shared<spdlog::sinks::stdout_sink_st>();
  }

  const std::size_t max_batches;
  // Shared because spdlog's queue holds the logger of each message, and the logger the pool.
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<FileSink> file;  // null: standard output
  std::shared_ptr<spdlog::async_logger> logger;
};

AccessLog::AccessLog(const std::string& target, std::size_t max_batches, observe::LogFields fields)
    : fields_(fields) {
  if (target == "off") return;
  impl_ = std::make_unique<Impl>(target, max_batches);
}

AccessLog::~AccessLog() = default;

// A file that there is not yet is made in its folder; whether it could be is asked of the folder, so that
// none is made now.
std::string AccessLog::fault_of(const std::string& target) {
  if (target == "-" || target == "off") return "";
  const int fd = ::open(target.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) {
    ::close(fd);
    return "";
  }
  if (errno == ENXIO) return "";  // a pipe that nobody reads yet
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

// An empty batch wakes the thread that writes; where the queue is full, the next one does.
void AccessLog::reopen(std::function<void(const std::string&)> fault) {
  if (!impl_ || !impl_->file) return;
  impl_->file->reopen_at_next(std::move(fault));
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
  observe::append_json(lines_, record, log_.fields());
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

}  // namespace weir::app
