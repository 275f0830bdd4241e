// Measures the worker's cost of the access log per request: formatting alone, and formatting with the
// transfer of lines to the writing thread.
#include "weir/log/access_log.hpp"

#include <benchmark/benchmark.h>

namespace weir {
namespace {

observe::AccessRecord typical() {
  observe::AccessRecord record;
  record.start = base::TimePoint{base::Duration{1'771'581'600'123'456}};
  record.total = base::Duration{412};
  record.upstream = base::Duration{301};
  record.client = *base::IpAddress::parse("203.0.113.7");
  record.method = "GET";
  record.target = "/api/v1/items/4711?fields=name,price&page=2";
  record.host = "api.example.com";
  record.route = "/api/*";
  record.status = 200;
  record.bytes_out = 98;
  record.verdict = "forward";
  record.rule = "per-key";
  record.key = base::Digest128{0x0123456789abcdef, 0xfedcba9876543210};
  record.server = "10.0.0.1:9000";
  record.request_id = "3f2a9c1e5b7d40868f1e2d3c4b5a6978";
  record.user_agent = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
  return record;
}

void format_line(benchmark::State& state) {
  const auto record = typical();
  std::string line;
  for (auto _ : state) {
    line.clear();
    observe::append_json(line, record);
    benchmark::DoNotOptimize(line.data());
  }
  state.counters["bytes"] = static_cast<double>(line.size());
}
BENCHMARK(format_line);

// Transfers many lines together, as a running weir does. The Time column is the worker's time. The CPU column
// is the time of the whole process, including the writing thread.
void record_batched(benchmark::State& state) {
  net::asio::io_context io;
  observe::Counters counters({});
  log::AccessLog log("/dev/null", {});
  log::AccessLogLines lines(log, io.get_executor(), counters);
  const auto record = typical();
  for (auto _ : state) lines.record(record);
  state.counters["dropped"] = static_cast<double>(counters.access_log_dropped.value());
}
BENCHMARK(record_batched)->MeasureProcessCPUTime();

// For comparison: transfers each line separately.
void record_one_by_one(benchmark::State& state) {
  net::asio::io_context io;
  observe::Counters counters({});
  log::AccessLog log("/dev/null", {});
  log::AccessLogLines lines(log, io.get_executor(), counters);
  const auto record = typical();
  for (auto _ : state) {
    lines.record(record);
    lines.flush();
  }
  state.counters["dropped"] = static_cast<double>(counters.access_log_dropped.value());
}
BENCHMARK(record_one_by_one)->MeasureProcessCPUTime();

void record_histogram(benchmark::State& state) {
  observe::Histogram histogram;
  std::int64_t us = 1;
  for (auto _ : state) {
    us = us * 48'271 % 2'147'483'647;
    histogram.record(base::Duration{us & 0xffff});
  }
  benchmark::DoNotOptimize(histogram.read().count);
}
BENCHMARK(record_histogram);

void count_request(benchmark::State& state) {
  observe::Counters counters({.routes = 4, .rules = 4, .upstreams = 1});
  unsigned status = 200;
  for (auto _ : state) {
    counters.requests(2, status).add();
    status = status == 200 ? 429 : 200;
  }
}
BENCHMARK(count_request);

}  // namespace
}  // namespace weir
