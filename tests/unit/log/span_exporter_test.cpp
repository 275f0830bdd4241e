#include "weir/log/span_exporter.hpp"

#include "unit/fetch/scripted_server.hpp"

#include <new>
#include <thread>

namespace weir::log {
namespace {

using fetch::ScriptedServer;

const std::string kAccepted = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

void record(SpanExporter& exporter) {
  const observe::AccessRecord request;
  const observe::TraceContext trace = observe::join_trace({}, {}, {});
  exporter.record({.record = request, .trace = trace, .upstream = {}, .limit = {}});
}

template <class Condition>
void wait_until(Condition holds) {  // the test program's own time limit ends a wait that takes too long
  while (!holds()) std::this_thread::yield();
}

TEST(SpanExporter, DestructorExportsTheQueuedSpans) {
  ScriptedServer collector(kAccepted);
  {
    SpanExporter exporter({.endpoint = collector.url("127.0.0.1"), .interval = std::chrono::hours(1)},
                          [](const auto&) {});
    for (int i = 0; i < 3; ++i) record(exporter);
  }
  EXPECT_EQ(collector.requests(), 1);
}

// The test hangs if the exporter waits for the collector.
TEST(SpanExporter, DestructorDoesNotWaitForASilentCollector) {
  ScriptedServer collector("");
  SpanExporter exporter({.endpoint = collector.url("127.0.0.1"),
                         .interval = std::chrono::milliseconds(1),
                         .timeout = std::chrono::hours(1)},
                        [](const auto&) {});
  record(exporter);
  wait_until([&] { return collector.requests() != 0; });
}

TEST(SpanExporter, FullQueueIsExportedBeforeTheIntervalEnds) {
  ScriptedServer collector(kAccepted);
  SpanExporter exporter(
      {.endpoint = collector.url("127.0.0.1"), .max_queue = 2, .interval = std::chrono::hours(1)},
      [](const auto&) {});
  record(exporter);
  record(exporter);
  wait_until([&] { return exporter.figures().exported == 2; });
}

TEST(SpanExporter, ExportContinuesIfMemoryForALogMessageRunsOut) {
  ScriptedServer collector("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n");
  SpanExporter exporter({.endpoint = collector.url("127.0.0.1"), .interval = std::chrono::milliseconds(1)},
                        [](const auto&) { throw std::bad_alloc(); });
  record(exporter);
  wait_until([&] { return exporter.figures().dropped_rejected == 1; });
  record(exporter);
  wait_until([&] { return exporter.figures().dropped_rejected == 2; });
}

TEST(SpanExporter, ShownOriginOfTheEndpointHasNoPathAndNoQuery) {
  EXPECT_EQ(TracingSettings{.endpoint = "https://a:4318/secret?key=x"}.origin(), "https://a:4318");
  EXPECT_EQ(TracingSettings{.endpoint = "http://a"}.origin(), "http://a");
  EXPECT_EQ(TracingSettings{.endpoint = "http://a?key=x"}.origin(), "http://a");
}

}  // namespace
}  // namespace weir::log
