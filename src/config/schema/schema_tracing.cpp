// The schema of [tracing].
#include "config/schema/schema_keys.hpp"

namespace weir::config {

namespace {

constexpr KeySpec kTracingKeys[] = {
    like(pattern::kWebhook,
         required("endpoint", Kind::Text,
                  "http:// or https:// address to which weir posts spans (OTLP over HTTP), usually "
                  "\"http://127.0.0.1:4318/v1/traces\"")),
    named("headers", kFieldShapes, "header fields of each post, such as Authorization: name = \"text\""),
    key("ca", Kind::Text, "",
        "PEM file: the authority of the collector's certificate; absent: the system's authorities"),
    key("service", Kind::Text, "weir", "service.name of the spans"),
    like(pattern::kPortion,
         key("sample", Kind::Text, "1%",
             "share of requests whose spans are exported, among those without a parent from a trusted "
             "proxy; up to three decimals")),
    key("follow_parent", Kind::Bool, "true",
        "a traceparent of a trusted proxy decides whether the span is exported; false: sample decides"),
    key("refusals", Kind::Bool, "true", "also exports the span of each request that a rule refuses"),
    whole("max_queue", 1, 1'000'000, "2048",
          "most spans that wait for their export; weir drops and counts those beyond"),
    key("interval", Kind::Duration, "1s",
        "longest time until weir posts a span; 512 spans are posted at once"),
    key("timeout", Kind::Duration, "10s", "time for one post"),
};

}  // namespace

namespace schema {
constinit const TableSpec kTracing{kTracingKeys};
}  // namespace schema

}  // namespace weir::config
