#include "weir/observe/access_record.hpp"

#include "weir/observe/json_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <arpa/inet.h>

namespace weir::observe {

namespace {

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

// `number` in exactly `width` digits. REQUIRES number < 10^width, width ≤ 8.
void append_padded(std::string& out, std::uint64_t number, std::size_t width) {
  std::array<char, 8> digits;
  for (std::size_t i = width; i-- > 0; number /= 10) digits[i] = static_cast<char>('0' + number % 10);
  out.append(digits.data(), width);
}

// "2026-02-20T10:00:00.123456Z" (RFC 3339).
void append_time(std::string& out, base::TimePoint time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const auto of_day = static_cast<std::uint64_t>((time - day).count());
  const std::uint64_t seconds = of_day / 1'000'000;
  append_padded(out, static_cast<std::uint64_t>(static_cast<int>(date.year())), 4);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.day()), 2);
  out += 'T';
  append_padded(out, seconds / 3600, 2);
  out += ':';
  append_padded(out, seconds / 60 % 60, 2);
  out += ':';
  append_padded(out, seconds % 60, 2);
  out += '.';
  append_padded(out, of_day % 1'000'000, 6);
  out += 'Z';
}

void append_address(std::string& out, const base::IpAddress& ip) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (!ip.is_v4()) {
    out += inet_ntop(AF_INET6, ip.bytes().data(), text.data(), text.size());
    return;
  }
  for (std::size_t i = 12; i < 16; ++i) {
    if (i > 12) out += '.';
    append_number(out, ip.bytes()[i]);
  }
}

// The 32 digits of the two words as numbers, high word first.
void append_digest(std::string& out, const base::Digest128& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<char, 32> text;
  for (std::size_t i = 0; i < 16; ++i) {
    text[i] = kDigits[digest.hi >> (60 - 4 * i) & 15];
    text[16 + i] = kDigits[digest.lo >> (60 - 4 * i) & 15];
  }
  out.append(text.data(), text.size());
}

// `name`: a comma, the member's name in quotes and a colon, all in one literal.
void append_text(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out += name;
  append_json_text(out, value);
}

void append_count(std::string& out, std::string_view name, std::uint64_t value) {
  out += name;
  append_number(out, value);
}

void append_duration(std::string& out, std::string_view name, base::Duration value) {
  if (value.count() > 0) append_count(out, name, static_cast<std::uint64_t>(value.count()));
}

void append_request(std::string& out, const AccessRecord& record) {
  append_text(out, R"(,"method":)", record.method);
  append_text(out, R"(,"target":)", record.target);
  append_text(out, R"(,"host":)", record.host);
  append_text(out, R"(,"user_agent":)", record.user_agent);
  append_text(out, R"(,"request_id":)", record.request_id);
  append_text(out, R"(,"traceparent":)", record.traceparent);
  append_text(out, R"(,"route":)", record.route);
}

void append_decision(std::string& out, const AccessRecord& record) {
  append_text(out, R"(,"verdict":)", record.verdict);
  append_text(out, R"(,"rule":)", record.rule);
  if (!record.key) return;
  out += R"(,"key":")";
  append_digest(out, *record.key);
  out += '"';
}

}  // namespace

void append_json(std::string& out, const AccessRecord& record) {
  out += R"({"time":")";
  append_time(out, record.start);
  out += R"(","client":")";
  append_address(out, record.client);
  out += '"';
  append_request(out, record);
  append_count(out, R"(,"status":)", record.status);
  append_count(out, R"(,"bytes_in":)", record.bytes_in);
  append_count(out, R"(,"bytes_out":)", record.bytes_out);
  append_count(out, R"(,"total_us":)",
               static_cast<std::uint64_t>(std::max<std::int64_t>(record.total.count(), 0)));
  append_duration(out, R"(,"queued_us":)", record.queued);
  append_duration(out, R"(,"upstream_us":)", record.upstream);
  append_decision(out, record);
  append_text(out, R"(,"server":)", record.server);
  append_text(out, R"(,"error":)", record.error);
  out += "}\n";
}

}  // namespace weir::observe
