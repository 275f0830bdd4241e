#include "weir/observe/span.hpp"

#include "weir/base/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace weir::observe {

namespace {

using protozero::pbf_writer;

// The numbers of the fields in OTLP messages: kMessageField is the number of the field `field` of the message
// `message`.
using Tag = protozero::pbf_tag_type;
constexpr Tag kRequestResourceSpans = 1;
constexpr Tag kResourceSpansResource = 1, kResourceSpansScopeSpans = 2;
constexpr Tag kResourceAttributes = 1;
constexpr Tag kScopeSpansScope = 1, kScopeSpansSpans = 2;
constexpr Tag kScopeName = 1;
constexpr Tag kSpanTraceId = 1, kSpanSpanId = 2, kSpanParentSpanId = 4, kSpanName = 5, kSpanKind = 6,
              kSpanStartTime = 7, kSpanEndTime = 8, kSpanAttributes = 9, kSpanStatus = 15;
constexpr Tag kKeyValueKey = 1, kKeyValueValue = 2;
constexpr Tag kAnyValueString = 1, kAnyValueInt = 3;
constexpr Tag kStatusCode = 3;
constexpr Tag kResponsePartialSuccess = 1, kPartialSuccessRejectedSpans = 1;

constexpr std::int32_t kServerKind = 2;   // SPAN_KIND_SERVER
constexpr std::int32_t kErrorStatus = 2;  // STATUS_CODE_ERROR

template <std::size_t kDigits>
std::string bytes_of(const std::array<char, kDigits>& digits) {
  const auto value = [](char digit) {
    return static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  };
  std::string bytes;
  for (std::size_t i = 0; i < kDigits; i += 2)
    bytes += static_cast<char>(value(digits[i]) << 4 | value(digits[i + 1]));
  return bytes;
}

std::uint64_t nanoseconds(base::TimePoint at) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(at.time_since_epoch()).count());
}

// Returns the text without control characters and in valid UTF-8, which protobuf requires. Cuts the text to
// kLongestText octets.
std::string printable(std::string_view text) {
  std::string good;
  auto rest = text.substr(0, kLongestText);
  while (!rest.empty()) {
    const auto [code, length] = base::first_utf8(rest);
    const auto taken = std::max<std::size_t>(length, 1);
    if (length == 0 || code < 0x20 || code == 0x7f)
      good += '?';
    else
      good += rest.substr(0, length);
    rest.remove_prefix(taken);
  }
  return good;
}

void add_attribute(pbf_writer& parent, Tag tag, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  pbf_writer pair(parent, tag);
  pair.add_string(kKeyValueKey, key.data(), key.size());
  pbf_writer(pair, kKeyValueValue).add_string(kAnyValueString, printable(text));
}

// Adds an attribute of a span.
void add(pbf_writer& span, std::string_view key, std::string_view text) {
  add_attribute(span, kSpanAttributes, key, text);
}

void add_number(pbf_writer& span, std::string_view key, std::int64_t number) {
  pbf_writer pair(span, kSpanAttributes);
  pair.add_string(kKeyValueKey, key.data(), key.size());
  pbf_writer(pair, kKeyValueValue).add_int64(kAnyValueInt, number);
}

void add_wait(pbf_writer& span, std::string_view key, base::Duration wait) {
  if (wait.count() > 0) add_number(span, key, wait.count());
}

// Returns the method if it is a usual one, otherwise "HTTP". Tools group spans by name, and clients can send
// any token.
std::string_view usual_method(std::string_view method) {
  constexpr std::string_view kUsual[] = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                         "CONNECT", "OPTIONS", "TRACE", "PATCH"};
  return std::find(std::begin(kUsual), std::end(kUsual), method) != std::end(kUsual) ? method : "HTTP";
}

// Adds the attributes that OpenTelemetry defines for the server's side of HTTP.
void add_http(pbf_writer& out, const Span& span) {
  const auto& record = span.record;
  const auto question = record.target.find('?');
  add(out, "http.request.method", record.method);
  add(out, "url.scheme", span.secure ? "https" : "http");
  add(out, "url.path", record.target.substr(0, question));
  if (question != std::string_view::npos) add(out, "url.query", record.target.substr(question + 1));
  const auto colon = record.host.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && record.host.find(']', colon) == std::string_view::npos;
  add(out, "server.address", record.host.substr(0, has_port ? colon : std::string_view::npos));
  std::uint16_t port = 0;
  if (has_port &&
      std::from_chars(record.host.data() + colon + 1, record.host.data() + record.host.size(), port).ec ==
          std::errc())
    add_number(out, "server.port", port);
  add(out, "client.address", record.client.to_string());
  add(out, "user_agent.original", record.user_agent);
  add(out, "network.protocol.version",
      record.protocol.substr(std::min(record.protocol.find('/') + 1, record.protocol.size())));
  if (record.status != 0) add_number(out, "http.response.status_code", record.status);
  add(out, "error.type", record.error);
}

// Adds what weir decided, and where the time went. Times are in microseconds.
void add_decision(pbf_writer& out, const Span& span) {
  const auto& record = span.record;
  add(out, "weir.route", record.route);
  add(out, "weir.upstream", span.upstream);
  add(out, "weir.server", record.server);
  add(out, "weir.request_id", record.request_id);
  add(out, "weir.verdict", record.verdict);
  add(out, "weir.rule", record.rule);
  if (span.limit) {
    add_number(out, "weir.limit", static_cast<std::int64_t>(span.limit->limit));
    add_number(out, "weir.remaining", static_cast<std::int64_t>(span.limit->remaining));
  }
  add_wait(out, "weir.redis_us", span.redis);
  add_wait(out, "weir.queued_us", record.queued);
  add_wait(out, "weir.paced_us", record.paced);
  add_wait(out, "weir.upstream_us", record.upstream);
}

}  // namespace

void append_span(std::string& text, const Span& span) {
  const auto& record = span.record;
  const auto& trace = span.trace;
  pbf_writer out(text);
  out.add_bytes(kSpanTraceId, bytes_of(trace.trace));
  out.add_bytes(kSpanSpanId, bytes_of(trace.span));
  if (trace.has_parent) out.add_bytes(kSpanParentSpanId, bytes_of(trace.parent));
  std::string name(usual_method(record.method));
  if (!record.route.empty()) name.append(" ").append(record.route);
  out.add_string(kSpanName, name);
  out.add_enum(kSpanKind, kServerKind);
  out.add_fixed64(kSpanStartTime, nanoseconds(record.start));
  out.add_fixed64(kSpanEndTime, nanoseconds(record.start + record.total));
  add_http(out, span);
  add_decision(out, span);
  // Only a status of 500 or more is an error. A request without a status is no error, because its client has
  // left.
  if (record.status >= 500) pbf_writer(out, kSpanStatus).add_enum(kStatusCode, kErrorStatus);
}

void append_export(std::string& text, std::string_view service, std::span<const std::string> spans) {
  pbf_writer out(text);
  pbf_writer of_resource(out, kRequestResourceSpans);
  {
    pbf_writer about(of_resource, kResourceSpansResource);
    add_attribute(about, kResourceAttributes, "service.name", service);
    add_attribute(about, kResourceAttributes, "service.version", WEIR_VERSION);
  }
  pbf_writer of_scope(of_resource, kResourceSpansScopeSpans);
  {
    pbf_writer about(of_scope, kScopeSpansScope);
    about.add_string(kScopeName, "weir");
  }
  for (const auto& span : spans) of_scope.add_message(kScopeSpansSpans, span);
}

std::uint64_t rejected_spans(std::string_view text) noexcept {
  try {
    protozero::pbf_reader reader(text.data(), text.size());
    while (reader.next()) {
      if (reader.tag() != kResponsePartialSuccess ||
          reader.wire_type() != protozero::pbf_wire_type::length_delimited) {
        reader.skip();
        continue;
      }
      auto partial = reader.get_message();
      while (partial.next())
        if (partial.tag() == kPartialSuccessRejectedSpans &&
            partial.wire_type() == protozero::pbf_wire_type::varint)
          return static_cast<std::uint64_t>(std::max<std::int64_t>(partial.get_int64(), 0));
        else
          partial.skip();
    }
  } catch (const protozero::exception&) {  // the answer is no protobuf
  }
  return 0;
}

}  // namespace weir::observe
