#include "weir/log/span_exporter.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace weir::log {

namespace {

// Returns true for answers after which the same spans may be sent again (OTLP, "Retryable Response Codes").
bool asks_for_retry(unsigned status) noexcept {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

bool is_success(unsigned status) noexcept {
  return status >= 200 && status < 300;
}

}  // namespace

std::string TracingSettings::origin() const {
  const auto host = endpoint.find("://") + 3;
  return endpoint.substr(0, endpoint.find_first_of("/?#", host));
}

SpanExporter::SpanExporter(TracingSettings settings, Report report)
    : settings_(std::move(settings)),
      report_(std::move(report)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

SpanExporter::~SpanExporter() {
  thread_.request_stop();
  thread_.join();
}

void SpanExporter::record(const observe::Span& span) noexcept try {
  std::string encoded;
  observe::append_span(encoded, span);
  std::size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() < settings_.max_queue) {
      queue_.push_back(std::move(encoded));
      waiting = queue_.size();
    }
  }
  if (waiting == 0) dropped_full_.fetch_add(1, std::memory_order_relaxed);
  if (waiting == std::min(kBatch, settings_.max_queue)) due_.notify_one();
} catch (const std::bad_alloc&) {
  dropped_full_.fetch_add(1, std::memory_order_relaxed);
}

SpanExporter::Figures SpanExporter::figures() const noexcept {
  return {.exported = exported_.load(std::memory_order_relaxed),
          .dropped_full = dropped_full_.load(std::memory_order_relaxed),
          .dropped_rejected = dropped_rejected_.load(std::memory_order_relaxed),
          .failed_posts = failed_posts_.load(std::memory_order_relaxed)};
}

void SpanExporter::run(const std::stop_token& stop) {
  auto pause = settings_.interval;
  const auto drop_if_out_of_memory = [this](const auto& step) {
    try {
      step();
    } catch (const std::bad_alloc&) {
      drop_batch();
    }
  };
  while (!stop.stop_requested())
    drop_if_out_of_memory([&] {
      if (!take_batch(stop, pause)) return;
      const bool sent = send(settings_.timeout, stop);
      pause = sent ? settings_.interval : std::min(2 * pause, kLongestPause);
    });
  drop_if_out_of_memory([&] { export_rest(); });
}

void SpanExporter::export_rest() {
  const auto latest = std::chrono::steady_clock::now() + kLastSends;
  for (;;) {
    const auto left = std::chrono::duration_cast<base::Duration>(latest - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !take_batch({}, base::Duration{0}) ||
        !send(std::min(left, settings_.timeout), {}))
      return;
  }
}

// Waits at most `pause` for a full batch, then moves up to kBatch spans from the queue to batch_. If batch_
// still has the spans of a POST that failed, moves none and waits the whole pause. The caller then sends
// these spans again. Returns false if there is nothing to send or `stop` is requested.
bool SpanExporter::take_batch(const std::stop_token& stop, base::Duration pause) {
  std::unique_lock lock(mutex_);
  const bool again = !batch_.empty();
  const auto full = std::min(kBatch, settings_.max_queue);
  due_.wait_for(lock, stop, pause, [&] { return !again && queue_.size() >= full; });
  if (stop.stop_requested()) return false;
  if (again) return true;
  const auto count = static_cast<std::ptrdiff_t>(std::min(kBatch, queue_.size()));
  batch_.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.begin() + count));
  queue_.erase(queue_.begin(), queue_.begin() + count);
  return !batch_.empty();
}

// Sends batch_ and clears it. If the spans must be sent again, keeps them and returns false.
bool SpanExporter::send(base::Duration timeout, const std::stop_token& stop) {
  fetch::Request request{.url = settings_.endpoint,
                         .method = "POST",
                         .fields = settings_.headers,
                         .ca_file = settings_.ca,
                         .timeout = timeout,
                         .allow_http = true};
  request.fields.emplace_back("Content-Type", "application/x-protobuf");
  observe::append_export(request.body, settings_.service, batch_);
  const auto answer = fetch::request(request, stop);
  if (!answer && stop.stop_requested()) return false;
  if (!answer || asks_for_retry(answer->status)) {
    failed_posts_.fetch_add(1, std::memory_order_relaxed);
    report_failure(answer ? "it answered " + std::to_string(answer->status) : answer.error().message);
    return false;
  }
  count(*answer);
  batch_.clear();
  return true;
}

void SpanExporter::count(const fetch::Response& answer) {
  const std::uint64_t sent = batch_.size();
  const auto rejected =
      is_success(answer.status) ? std::min(observe::rejected_spans(answer.body), sent) : sent;
  exported_.fetch_add(sent - rejected, std::memory_order_relaxed);
  dropped_rejected_.fetch_add(rejected, std::memory_order_relaxed);
  if (rejected == 0) return report_success();
  report_failure("it rejected " + std::to_string(rejected) + " spans with status " +
                 std::to_string(answer.status));
}

void SpanExporter::drop_batch() noexcept {
  dropped_full_.fetch_add(batch_.size(), std::memory_order_relaxed);
  batch_.clear();
}

void SpanExporter::report_failure(const std::string& why) {
  const auto now = std::chrono::steady_clock::now();
  if (is_reported_ || now < quiet_until_) return;
  quiet_until_ = now + kQuiet;
  is_reported_ = true;
  report_("tracing: cannot export spans to " + settings_.origin() + ": " + why +
          "; requests are not affected");
}

void SpanExporter::report_success() {
  if (std::exchange(is_reported_, false)) report_("tracing: spans are exported again");
}

}  // namespace weir::log
