// Counts a request that has ended and writes its line of the access log.
#pragma once

#include "proxy/admission/admission_controller.hpp"
#include "proxy/exchange/exchange_buffers.hpp"
#include "proxy/exchange/request_report.hpp"

#include "weir/proxy/configuration.hpp"
#include "weir/proxy/worker.hpp"

namespace weir::proxy {

// Where the report's words come from. References: valid during the call.
struct ReportSources {
  Worker& worker;
  const Configuration& config;  // that the request began with
  const ExchangeBuffers& buffers;
  const AdmissionController& admission;
};

// Must be called once for each request, whatever ended it, after its charges were refunded or kept. A line
// for which there is no memory is counted as dropped.
void report_access(const RequestReport& report, const ReportSources& sources, base::TimePoint ended) noexcept;

// Returns what the server's answer, or its silence, says of its load, for limiters that learn from it.
[[nodiscard]] limit::Ending ending_of(const RequestReport& report) noexcept;

}  // namespace weir::proxy
