#include "weir/observe/access_record.hpp"

#include "observe/json_line.hpp"

#include "weir/base/text_writer.hpp"
#include "weir/observe/json_text.hpp"

#include <algorithm>
#include <array>

#include <arpa/inet.h>

namespace weir::observe {

namespace {

using base::TextWriter;

// Appends "2026-02-20T10:00:00.123456Z" (RFC 3339).
void write_time(TextWriter& out, base::TimePoint time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const auto of_day = static_cast<std::uint64_t>((time - day).count());
  const std::uint64_t seconds = of_day / 1'000'000;
  out.padded(static_cast<std::uint64_t>(static_cast<int>(date.year())), 4) << '-';
  out.padded(static_cast<unsigned>(date.month()), 2) << '-';
  out.padded(static_cast<unsigned>(date.day()), 2) << 'T';
  out.padded(seconds / 3600, 2) << ':';
  out.padded(seconds / 60 % 60, 2) << ':';
  out.padded(seconds % 60, 2) << '.';
  out.padded(of_day % 1'000'000, 6) << 'Z';
}

void write_address(TextWriter& out, const base::IpAddress& ip) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (!ip.is_v4()) {
    out << std::string_view(inet_ntop(AF_INET6, ip.bytes().data(), text.data(), text.size()));
    return;
  }
  for (std::size_t i = 12; i < 16; ++i) {
    if (i > 12) out << '.';
    out << std::uint64_t{ip.bytes()[i]};
  }
}

// The beginning of a member in the JSON line: `,"name":`.
struct Beginning {
  std::array<char, 16> text{};
  std::size_t size = 0;

  constexpr void add(std::string_view more) {
    for (const char c : more) text[size++] = c;
  }
};
constexpr std::array<Beginning, kLogFields> beginnings() {
  std::array<Beginning, kLogFields> all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].add(",\"");
    all[i].add(kLogFieldNames[i]);
    all[i].add("\":");
  }
  return all;
}
constexpr auto kBeginnings = beginnings();

constexpr std::string_view beginning_of(LogField field) noexcept {
  const auto& beginning = kBeginnings[static_cast<std::size_t>(field)];
  return {beginning.text.data(), beginning.size};
}

// Writes the members of one JSON line. Skips each member that is not in `fields`.
class Line {
 public:
  Line(TextWriter& out, LogFields fields) noexcept : out_(out), fields_(fields) {}

  void text(LogField field, std::string_view value) {
    if (fields_.has(field)) write_text(out_, beginning_of(field), value);
  }
  void count(LogField field, std::uint64_t value) {
    if (fields_.has(field)) write_count(out_, beginning_of(field), value);
  }
  void json(LogField field, std::string_view value) {
    if (fields_.has(field) && !value.empty()) out_ << beginning_of(field) << value;
  }
  void duration(LogField field, base::Duration value) {
    if (fields_.has(field) && value.count() > 0)
      write_count(out_, beginning_of(field), static_cast<std::uint64_t>(value.count()));
  }
  void digest(LogField field, const std::optional<base::Digest128>& value) {
    if (fields_.has(field) && value) write_digest(out_, beginning_of(field), *value);
  }

 private:
  TextWriter& out_;
  LogFields fields_;
};

void write_request(Line& line, const AccessRecord& record) {
  line.text(LogField::Protocol, record.protocol);
  line.text(LogField::Method, record.method);
  line.text(LogField::Target, record.target);
  line.text(LogField::Host, record.host);
  line.text(LogField::UserAgent, record.user_agent);
  line.text(LogField::RequestId, record.request_id);
  line.text(LogField::TraceId, record.trace_id);
  line.text(LogField::Route, record.route);
}

void write_answer(Line& line, const AccessRecord& record) {
  line.count(LogField::Status, record.status);
  line.count(LogField::BytesIn, record.bytes_in);
  line.count(LogField::BytesOut, record.bytes_out);
  line.count(LogField::Total, static_cast<std::uint64_t>(std::max<std::int64_t>(record.total.count(), 0)));
  line.duration(LogField::Queued, record.queued);
  line.duration(LogField::Upstream, record.upstream);
  line.duration(LogField::Paced, record.paced);
  line.text(LogField::Verdict, record.verdict);
  line.text(LogField::Rule, record.rule);
  line.digest(LogField::Key, record.key);
  line.text(LogField::Server, record.server);
  line.text(LogField::Error, record.error);
}

// Writes fields that are not among the default fields: those about the client, and the question.
void write_client(Line& line, const AccessRecord& record) {
  line.digest(LogField::ApiKey, record.api_key);
  line.text(LogField::User, record.user);
  line.text(LogField::Org, record.org);
  line.text(LogField::Service, record.service);
  line.text(LogField::Device, record.device);
  line.text(LogField::Tier, record.tier);
  line.text(LogField::Country, record.country);
  line.json(LogField::Question, record.question);
}

// Returns an upper bound for the length of the record's line, as if each octet of the record's texts needed
// an escape.
std::size_t most(const AccessRecord& record) noexcept {
  constexpr std::size_t kFixed = 1024;
  std::size_t texts = 0;
  for (const auto text :
       {record.method, record.target, record.host, record.user_agent, record.request_id, record.trace_id,
        record.route, record.verdict, record.rule, record.server, record.error, record.user, record.org,
        record.service, record.device, record.tier, record.country})
    texts += std::min(text.size(), kMaxJsonText + 1);
  return kFixed + kMostOfAnOctet * texts + record.question.size() +
         (record.replay != nullptr ? most_of(*record.replay) : 0);
}

constexpr bool is_lower_hex(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

constexpr bool is_zero(std::string_view text) noexcept {
  return text.find_first_not_of('0') == std::string_view::npos;
}

}  // namespace

void append_json(std::string& text, const AccessRecord& record, LogFields fields) {
  TextWriter out(text, most(record));
  Line line(out, fields);
  out << R"({"time":")";
  write_time(out, record.start);
  out << '"';
  if (fields.has(LogField::Client)) {
    out << R"(,"client":")";
    write_address(out, record.client);
    out << '"';
  }
  write_request(line, record);
  write_answer(line, record);
  if (!LogFields::usual().holds_all(fields)) {
    write_client(line, record);
    if (fields.has(LogField::Replay) && record.replay != nullptr) write_replay(out, *record.replay);
  }
  out << "}\n";
}

void append_json(std::string& text, const ResetRecord& record) {
  TextWriter out(text, most_of(record));
  out << R"({"time":")";
  write_time(out, record.at - record.clock_ahead);
  out << '"';
  write_replay(out, record);
  out << "}\n";
}

// The format of a traceparent is version "-" trace-id "-" parent-id "-" flags. A later version may add more
// after another "-". The version ff, and IDs that consist of zeros only, are invalid.
std::string_view trace_id_of(std::string_view traceparent) noexcept {
  constexpr std::size_t kSize = 55, kTrace = 3, kTraceSize = 32, kParent = 36, kParentSize = 16, kFlags = 53;
  if (traceparent.size() < kSize || traceparent[2] != '-' || traceparent[35] != '-' || traceparent[52] != '-')
    return {};
  const auto version = traceparent.substr(0, 2);
  const auto trace = traceparent.substr(kTrace, kTraceSize);
  const auto parent = traceparent.substr(kParent, kParentSize);
  if (!is_lower_hex(version) || !is_lower_hex(trace) || !is_lower_hex(parent) ||
      !is_lower_hex(traceparent.substr(kFlags, 2)) || version == "ff" || is_zero(trace) || is_zero(parent))
    return {};
  if (traceparent.size() > kSize && (version == "00" || traceparent[kSize] != '-')) return {};
  return trace;
}

}  // namespace weir::observe
