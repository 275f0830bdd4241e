#include "weir/observe/access_record.hpp"

#include "weir/base/text_writer.hpp"
#include "weir/observe/json_text.hpp"

#include <algorithm>
#include <array>

#include <arpa/inet.h>

namespace weir::observe {

namespace {

using base::TextWriter;

// "2026-02-20T10:00:00.123456Z" (RFC 3339).
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

// The 32 digits of the two words as numbers, high word first.
void write_digest(TextWriter& out, const base::Digest128& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<char, 32> text;
  for (std::size_t i = 0; i < 16; ++i) {
    text[i] = kDigits[digest.hi >> (60 - 4 * i) & 15];
    text[16 + i] = kDigits[digest.lo >> (60 - 4 * i) & 15];
  }
  out << std::string_view(text.data(), text.size());
}

// `name`: a comma, the member's name in quotes and a colon, all in one literal.
void write_text(TextWriter& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out << name;
  if (is_plain_json_text(value)) {
    out << '"' << value << '"';
    return;
  }
  std::string escaped;
  append_json_text(escaped, value);
  out << std::string_view(escaped);
}

void write_count(TextWriter& out, std::string_view name, std::uint64_t value) {
  out << name << value;
}

void write_duration(TextWriter& out, std::string_view name, base::Duration value) {
  if (value.count() > 0) write_count(out, name, static_cast<std::uint64_t>(value.count()));
}

void write_request(TextWriter& out, const AccessRecord& record) {
  write_text(out, R"(,"method":)", record.method);
  write_text(out, R"(,"target":)", record.target);
  write_text(out, R"(,"host":)", record.host);
  write_text(out, R"(,"user_agent":)", record.user_agent);
  write_text(out, R"(,"request_id":)", record.request_id);
  write_text(out, R"(,"traceparent":)", record.traceparent);
  write_text(out, R"(,"route":)", record.route);
}

void write_decision(TextWriter& out, const AccessRecord& record) {
  write_text(out, R"(,"verdict":)", record.verdict);
  write_text(out, R"(,"rule":)", record.rule);
  if (!record.key) return;
  out << R"(,"key":")";
  write_digest(out, *record.key);
  out << '"';
}

// The most that the line takes, with every octet of its texts escaped.
std::size_t most(const AccessRecord& record) noexcept {
  constexpr std::size_t kFixed = 768;
  std::size_t texts = 0;
  for (const auto text :
       {record.method, record.target, record.host, record.user_agent, record.request_id, record.traceparent,
        record.route, record.verdict, record.rule, record.server, record.error})
    texts += std::min(text.size(), kMaxJsonText + 1);
  return kFixed + kMostOfAnOctet * texts;
}

}  // namespace

void append_json(std::string& text, const AccessRecord& record) {
  TextWriter out(text, most(record));
  out << R"({"time":")";
  write_time(out, record.start);
  out << R"(","client":")";
  write_address(out, record.client);
  out << '"';
  write_request(out, record);
  write_count(out, R"(,"status":)", record.status);
  write_count(out, R"(,"bytes_in":)", record.bytes_in);
  write_count(out, R"(,"bytes_out":)", record.bytes_out);
  write_count(out, R"(,"total_us":)",
              static_cast<std::uint64_t>(std::max<std::int64_t>(record.total.count(), 0)));
  write_duration(out, R"(,"queued_us":)", record.queued);
  write_duration(out, R"(,"upstream_us":)", record.upstream);
  write_decision(out, record);
  write_text(out, R"(,"server":)", record.server);
  write_text(out, R"(,"error":)", record.error);
  out << "}\n";
}

}  // namespace weir::observe
