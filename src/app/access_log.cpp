#include "weir/app/access_log.hpp"

#include <stdexcept>

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace weir::app {

namespace {

// Between asking whether there is room and taking it, each other worker may take one place. So many may, and
// still nothing that was accepted is ever overwritten.
constexpr std::size_t kMaxWriters = 256;

// Lines come finished: nothing before them, and their own newline after them.
std::unique_ptr<spdlog::formatter> verbatim() {
  return std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::utc, "");
}

spdlog::sink_ptr open_sink(const std::string& target) {
  if (target == "-") return std::make_shared<spdlog::sinks::stdout_sink_st>();
  return std::make_shared<spdlog::sinks::basic_file_sink_st>(target);
}

}  // namespace

struct AccessLog::Impl {
  Impl(const std::string& target, std::size_t most)
      : max_batches(most),
        pool(std::make_shared<spdlog::details::thread_pool>(most + kMaxWriters, 1)),
        logger(std::make_shared<spdlog::async_logger>("access", open_sink(target), pool,
                                                      spdlog::async_overflow_policy::overrun_oldest)) {
    logger->set_formatter(verbatim());
    logger->flush_on(
        spdlog::level::info);  // a batch is worth a write; nobody waits for the next to see the last
  }
  // The thread has written all and is joined before the file goes.
  ~Impl() { pool.reset(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::size_t max_batches;
  // Shared because spdlog's queue holds the logger of each message, and the logger the pool.
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::async_logger> logger;
};

AccessLog::AccessLog(const std::string& target, std::size_t max_batches) {
  if (target == "off") return;
  try {
    impl_ = std::make_unique<Impl>(target, max_batches);
  } catch (const spdlog::spdlog_ex& error) {
    throw std::runtime_error("access log: " + std::string(error.what()));
  }
}

AccessLog::~AccessLog() = default;

bool AccessLog::write(std::string_view lines) {
  if (!impl_) return true;
  if (impl_->pool->queue_size() >= impl_->max_batches) return false;
  impl_->logger->log(spdlog::level::info, spdlog::string_view_t(lines.data(), lines.size()));
  return true;
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
  observe::append_json(lines_, record);
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
