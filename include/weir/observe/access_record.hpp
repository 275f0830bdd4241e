// The facts about one ended request, and the line of the access log that weir writes about it. Every request
// gets a line, whether it succeeded or failed.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/siphash.hpp"
#include "weir/base/time.hpp"
#include "weir/observe/replay_record.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::observe {

// The fields that a line of the access log may have besides its time, in the order of the line.
enum class LogField : std::uint8_t {
  Client,
  Protocol,
  Method,
  Target,
  Host,
  UserAgent,
  RequestId,
  TraceId,
  Route,
  Status,
  BytesIn,
  BytesOut,
  Total,
  Queued,
  Upstream,
  Paced,
  Verdict,
  Rule,
  Key,
  Server,
  Error,
  ApiKey,
  User,
  Org,
  Service,
  Device,
  Tier,
  Country,
  Question,
  Replay,
};
inline constexpr std::size_t kLogFields = 30;
inline constexpr std::array<std::string_view, kLogFields> kLogFieldNames{
    "client",  "protocol", "method",   "target",    "host",     "user_agent", "request_id",  "trace_id",
    "route",   "status",   "bytes_in", "bytes_out", "total_us", "queued_us",  "upstream_us", "paced_us",
    "verdict", "rule",     "key",      "server",    "error",    "api_key",    "user",        "org",
    "service", "device",   "tier",     "country",   "question", "replay"};

// A set of fields of the access log.
class LogFields {
 public:
  constexpr LogFields() = default;
  [[nodiscard]] constexpr bool has(LogField field) const noexcept {
    return (bits_ >> static_cast<unsigned>(field) & 1U) != 0;
  }
  constexpr LogFields& add(LogField field) noexcept {
    bits_ |= std::uint32_t{1} << static_cast<unsigned>(field);
    return *this;
  }
  constexpr LogFields& add_all(const LogFields& others) noexcept {
    bits_ |= others.bits_;
    return *this;
  }
  // Returns the default fields: all fields from the first to `error`.
  [[nodiscard]] static constexpr LogFields usual() noexcept {
    LogFields fields;
    for (unsigned i = 0; i <= static_cast<unsigned>(LogField::Error); ++i)
      fields.add(static_cast<LogField>(i));
    return fields;
  }
  // Returns the fields that `weir replay` reads.
  [[nodiscard]] static constexpr LogFields for_replay() noexcept {
    LogFields fields;
    for (const auto field :
         {LogField::Client, LogField::Method, LogField::Target, LogField::Host, LogField::Route,
          LogField::Status, LogField::Total, LogField::Upstream, LogField::Verdict, LogField::Replay})
      fields.add(field);
    return fields;
  }
  [[nodiscard]] constexpr bool holds_all(const LogFields& others) const noexcept {
    return (bits_ & others.bits_) == others.bits_;
  }
  friend constexpr bool operator==(const LogFields&, const LogFields&) = default;

 private:
  std::uint32_t bits_ = 0;
};
static_assert(kLogFields <= 32);

// One ended request. Contains views that are valid only during the call that receives the record. The log
// line leaves out empty or absent fields. Raw credentials have no field here.
struct AccessRecord {
  base::TimePoint start{};   // when the head was complete; by the machine's clock
  base::Duration total{0};   // from `start` to the end of the request
  base::Duration queued{0};  // part of `total`: the time in a queue, until the departure
  // Part of `total`: the time between sending the end of the request and receiving the answer's head.
  base::Duration upstream{0};
  // How long the bodies waited because of rules with `bandwidth`. The times of both directions are added,
  // though they may overlap.
  base::Duration paced{0};
  base::IpAddress client;       // the client's address, found behind trusted proxies
  std::string_view protocol{};  // "HTTP/1.0", "HTTP/1.1" or "HTTP/2"
  std::string_view method;
  std::string_view target;  // as received, with query
  std::string_view host;
  std::string_view route;       // name of the route; empty: no route matched
  unsigned status = 0;          // 0: weir sent no answer
  std::uint64_t bytes_in = 0;   // octets of the request's body
  std::uint64_t bytes_out = 0;  // octets of the response's body
  // "forward", "delay", "reject"; empty: the request ended before a decision
  std::string_view verdict;
  std::string_view rule;               // name of the rule that decided; empty: none
  std::optional<base::Digest128> key;  // the client's name under `rule`, a keyed digest
  std::string_view server;             // name of the server that answered
  std::string_view request_id;
  std::string_view trace_id;  // 32 hex digits (trace_id_of)
  std::string_view user_agent;
  // The failure, as a word that weir defines, such as "client_left" or "connect_failed".
  std::string_view error;
  // The identity of the client. The API key is a digest.
  std::optional<base::Digest128> api_key{};
  std::string_view user{}, org{}, service{}, device{}, tier{}, country{};
  std::string_view question{};           // a JSON object (append_question); empty: the request is no question
  const ReplayRecord* replay = nullptr;  // null: the line has no field "replay"
};

// Appends one line of JSON with its newline: the time, and the fields of the record that `fields` contains.
// Allocates only if `out` must grow.
void append_json(std::string& out, const AccessRecord& record, LogFields fields = LogFields::usual());

// Appends a line about the reset of a key: the time, and the facts that a replay needs.
void append_json(std::string& out, const ResetRecord& record);

// Returns the trace-id of a traceparent header (W3C Trace Context §3.2.2). Returns an empty text if the
// header is invalid.
[[nodiscard]] std::string_view trace_id_of(std::string_view traceparent) noexcept;

// Receives the records of one worker. Called on that worker's thread at the end of every request.
class AccessSink {
 public:
  virtual ~AccessSink() = default;
  virtual void record(const AccessRecord& record) = 0;
  // Returns the fields that the sink writes. Callers may leave all other fields of a record empty.
  [[nodiscard]] virtual LogFields fields() const noexcept { return LogFields::usual(); }
};

}  // namespace weir::observe
