// Updates the counters for a finished request and writes its access-log line.
#pragma once

#include "proxy/admission/admission_controller.hpp"
#include "proxy/exchange/exchange_buffers.hpp"
#include "proxy/exchange/request_report.hpp"

#include "weir/proxy/configuration.hpp"
#include "weir/proxy/worker.hpp"

namespace weir::proxy {

// Objects that report_access() reads access-log fields from. The references are used only during the call.
struct ReportSources {
  Worker& worker;
  const Configuration& config;  // the configuration that applied when the request started
  const ExchangeBuffers& buffers;
  const AdmissionController& admission;
};

// Must be called once for each request, however the request ended. The request's charges must have been
// refunded or kept before. If memory for the log line runs out, counts the line as dropped.
void report_access(const RequestReport& report, const ReportSources& sources, base::TimePoint ended) noexcept;

// Returns the result of the request for limiters that adapt to the server's load: the server's latency, or
// that the server failed.
[[nodiscard]] limit::Ending ending_of(const RequestReport& report) noexcept;

}  // namespace weir::proxy
