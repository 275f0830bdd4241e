// Sends the spans of requests to an OpenTelemetry collector: OTLP over HTTP, in binary protobuf.
//
//   workers ─► bounded queue ─► thread ─► POST of at most kBatch spans ─► collector
//
// server::Program owns the exporter. Workers never wait for the collector: if the queue is full, the exporter
// drops the span and counts it. While the collector does not answer, the thread repeats the same POST with
// growing pauses. The queue then keeps the oldest spans, and new spans are dropped.
#pragma once

#include "weir/base/time.hpp"
#include "weir/fetch/fetch.hpp"
#include "weir/observe/span.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace weir::log {

struct TracingSettings {
  std::string endpoint;  // "http://127.0.0.1:4318/v1/traces"
  fetch::Fields headers{};
  std::string
      ca{};  // PEM file: the authorities that may sign the collector's certificate; empty: the system's
  std::string service = "weir";
  std::size_t max_queue = 2048;                      // the most spans that wait for their export
  base::Duration interval{std::chrono::seconds(1)};  // the longest time that a span waits for a full batch
  base::Duration timeout{std::chrono::seconds(10)};  // for one POST
  observe::Sampling sampling{};

  // Returns scheme, host and port of the endpoint, for messages. The path and query are left out, because
  // they may be secret.
  [[nodiscard]] std::string origin() const;
};

class SpanExporter final : public observe::SpanSink {
 public:
  using Report = std::function<void(const std::string&)>;

  // `report`: called on the exporting thread with messages about failed exports, one line each. Throws
  // std::system_error if no thread can be started.
  SpanExporter(TracingSettings settings, Report report);
  // Exports the queued spans, for at most kLastSends. No worker may record spans at this time.
  ~SpanExporter() override;
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  static constexpr std::size_t kBatch = 512;  // spans of one POST
  static constexpr base::Duration kLastSends{std::chrono::seconds(1)};
  static constexpr base::Duration kLongestPause{std::chrono::seconds(30)};
  // the shortest time between two lines of the log about failures
  static constexpr std::chrono::minutes kQuiet{1};

  // Queues the span for export. If the queue or the memory is full, drops the span.
  void record(const observe::Span& span) noexcept override;

  struct Figures {
    std::uint64_t exported = 0;
    std::uint64_t dropped_full = 0;      // dropped, because the queue or the memory was full
    std::uint64_t dropped_rejected = 0;  // dropped, because the collector rejected them
    std::uint64_t failed_posts = 0;      // POSTs without an answer, and POSTs whose answer asks for a retry
  };
  // May be called by any thread. The numbers may be from different instants.
  [[nodiscard]] Figures figures() const noexcept;

 private:
  void run(const std::stop_token& stop);
  void export_rest();
  [[nodiscard]] bool take_batch(const std::stop_token& stop, base::Duration pause);
  [[nodiscard]] bool send(base::Duration timeout, const std::stop_token& stop);
  void count(const fetch::Response& answer);
  void drop_batch() noexcept;
  void report_failure(const std::string& why);
  void report_success();

  const TracingSettings settings_;
  const Report report_;
  std::mutex mutex_;                 // guards queue_
  std::condition_variable_any due_;  // signalled when a batch is full
  std::deque<std::string> queue_;    // encoded spans
  std::atomic<std::uint64_t> exported_{0}, dropped_full_{0}, dropped_rejected_{0}, failed_posts_{0};
  // Only the thread uses the next three members.
  std::vector<std::string> batch_;  // the spans of the next POST
  bool is_reported_ = false;        // true: the log has a line about the failure that lasts now
  std::chrono::steady_clock::time_point
      quiet_until_{};  // until then, the exporter logs no further line about a failure
  std::jthread thread_;
};

}  // namespace weir::log
