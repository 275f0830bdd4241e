// Spans of requests in the form of OpenTelemetry, encoded for OTLP (opentelemetry-proto 1.0, trace.proto).
// Pure.
#pragma once

#include "weir/observe/access_record.hpp"
#include "weir/observe/trace.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::observe {

// The limit of the rule that decided, as the client sees it.
struct ShownLimit {
  std::uint64_t limit = 0;
  std::uint64_t remaining = 0;
};

// The facts about one ended request. The references are used only during the call that takes the span.
struct Span {
  const AccessRecord& record;
  const TraceContext& trace;
  std::string_view upstream;        // name of the upstream; empty: the request was for no upstream
  bool secure = false;              // true: the client used TLS
  std::optional<ShownLimit> limit;  // absent: no rule decided
  base::Duration redis{0};          // how long the request waited for Redis
};

// Appends the span as a message Span. Texts that clients choose are cut to kLongestText octets, so a span
// takes about 8 KiB at most.
void append_span(std::string& out, const Span& span);
inline constexpr std::size_t kLongestText = 1024;

// Appends the message ExportTraceServiceRequest with these spans. `service`: the name of this weir.
void append_export(std::string& out, std::string_view service, std::span<const std::string> spans);

// Returns how many spans the collector rejected, as its answer ExportTraceServiceResponse says. Returns 0 for
// an answer that cannot be read.
[[nodiscard]] std::uint64_t rejected_spans(std::string_view answer) noexcept;

// Receives the spans of all workers. May be called by any thread.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void record(const Span& span) noexcept = 0;
};

}  // namespace weir::observe
