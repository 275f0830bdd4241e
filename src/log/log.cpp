#include "weir/log/log.hpp"

#include <chrono>
#include <mutex>
#include <string>

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace weir::log {

namespace {

constexpr std::size_t kMaxQueued = 1024;  // the most lines in the queue

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::Trace:
      return spdlog::level::trace;
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warning:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
    case LogLevel::Off:
      break;
  }
  return spdlog::level::off;
}

std::string one_line(std::string_view message) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string line;
  line.reserve(message.size());
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      line += c;
    else
      line.append({'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]});
  }
  return line;
}

}  // namespace

struct Log::Impl {
  using Clock = std::chrono::steady_clock;

  explicit Impl(LogLevel level)
      : pool(std::make_shared<spdlog::details::thread_pool>(kMaxQueued, 1)),
        sink(std::make_shared<spdlog::sinks::stderr_sink_st>()),
        logger(make_logger()),
        audit(make_logger()) {
    sink->set_formatter(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                                                                    spdlog::pattern_time_type::utc));
    logger->set_level(spdlog_level(level));
  }
  // Destroys the pool first. The pool's thread writes all queued lines and ends before the sink is destroyed.
  ~Impl() { pool.reset(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] std::shared_ptr<spdlog::async_logger> make_logger() const {
    return std::make_shared<spdlog::async_logger>("weir", sink, pool,
                                                  spdlog::async_overflow_policy::overrun_oldest);
  }

  // Returns true if another line may be written in this second. If lines were dropped, first logs their
  // number.
  bool admit() {
    const std::lock_guard lock(mutex);
    const auto now = Clock::now();
    if (now - window_start >= std::chrono::seconds(1)) {
      if (left_out > 0) logger->warn("{} lines suppressed", left_out);
      window_start = now;
      in_window = 0;
      left_out = 0;
    }
    if (++in_window <= kMaxPerSecond) return true;
    ++left_out;
    return false;
  }

  // These objects are shared: messages in spdlog's queue keep the logger alive, which refers to the pool and
  // keeps the sink alive.
  std::shared_ptr<spdlog::details::thread_pool> pool;
  spdlog::sink_ptr sink;
  std::shared_ptr<spdlog::async_logger> logger;
  std::shared_ptr<spdlog::async_logger> audit;  // for audit(); its level never changes
  std::mutex mutex;                             // guards the members below
  Clock::time_point window_start{};
  unsigned in_window = 0;
  std::uint64_t left_out = 0;
};

Log::Log(LogLevel level) : impl_(std::make_unique<Impl>(level)) {}

Log::~Log() {
  if (impl_->left_out > 0) impl_->logger->warn("{} lines suppressed", impl_->left_out);
}

void Log::set_level(LogLevel level) {
  impl_->logger->set_level(spdlog_level(level));
}

void Log::write(LogLevel level, std::string_view message) {
  if (impl_->logger->should_log(spdlog_level(level)) && impl_->admit()) write_always(level, message);
}

void Log::write_always(LogLevel level, std::string_view message) {
  const auto as = spdlog_level(level);
  if (!impl_->logger->should_log(as)) return;
  const std::string line = one_line(message);
  impl_->logger->log(as, spdlog::string_view_t(line.data(), line.size()));
}

void Log::audit(std::string_view message) {
  const std::string line = one_line(message);
  impl_->audit->log(spdlog::level::warn, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace weir::log
