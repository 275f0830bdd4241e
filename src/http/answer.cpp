#include "weir/http/answer.hpp"

#include "weir/base/text_writer.hpp"
#include "weir/http/head.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::http {

namespace {

using base::TextWriter;

struct Status {
  unsigned code;
  std::string_view reason;
  std::string_view error;  // the value of the member "error" in weir's JSON
};

constexpr std::array kStatuses = {
    Status{200, "OK", "ok"},
    Status{201, "Created", "created"},
    Status{202, "Accepted", "accepted"},
    Status{204, "No Content", "no_content"},
    Status{301, "Moved Permanently", "moved"},
    Status{302, "Found", "found"},
    Status{304, "Not Modified", "not_modified"},
    Status{307, "Temporary Redirect", "moved"},
    Status{308, "Permanent Redirect", "moved"},
    Status{400, "Bad Request", "bad_request"},
    Status{401, "Unauthorized", "unauthorized"},
    Status{402, "Payment Required", "payment_required"},
    Status{403, "Forbidden", "forbidden"},
    Status{404, "Not Found", "not_found"},
    Status{405, "Method Not Allowed", "method_not_allowed"},
    Status{408, "Request Timeout", "request_timeout"},
    Status{409, "Conflict", "conflict"},
    Status{410, "Gone", "gone"},
    Status{411, "Length Required", "length_required"},
    Status{413, "Content Too Large", "content_too_large"},
    Status{414, "URI Too Long", "uri_too_long"},
    Status{415, "Unsupported Media Type", "unsupported_media_type"},
    Status{417, "Expectation Failed", "expectation_failed"},
    Status{418, "I'm a Teapot", "teapot"},
    Status{421, "Misdirected Request", "misdirected_request"},
    Status{429, "Too Many Requests", "rate_limit_exceeded"},
    Status{431, "Request Header Fields Too Large", "request_header_fields_too_large"},
    Status{500, "Internal Server Error", "internal_error"},
    Status{501, "Not Implemented", "not_implemented"},
    Status{502, "Bad Gateway", "bad_gateway"},
    Status{503, "Service Unavailable", "service_unavailable"},
    Status{504, "Gateway Timeout", "gateway_timeout"},
};
constexpr Status kUnknown{0, "Unknown", "error"};

// Maps each status from 200 on to its index in kStatuses. Unregistered statuses map to the size of kStatuses.
constexpr auto kPlaces = [] {
  std::array<std::uint8_t, 400> places{};
  places.fill(kStatuses.size());
  for (std::size_t i = 0; i < kStatuses.size(); ++i)
    places[kStatuses[i].code - 200] = static_cast<std::uint8_t>(i);
  return places;
}();

const Status& status_of(unsigned code) noexcept {
  const auto place = code - 200 < kPlaces.size() ? kPlaces[code - 200] : kStatuses.size();
  return place < kStatuses.size() ? kStatuses[place] : kUnknown;
}

std::uint64_t seconds(base::Duration d) noexcept {
  return static_cast<std::uint64_t>(base::ceil_seconds(d));
}

// An upper bound, in octets, for the constant words and the numbers in any one text that this file writes.
constexpr std::size_t kFixed = 512;

// Removes the first element of `list`, up to `separator`, and returns the element without surrounding white
// space.
std::string_view take_element(std::string_view& list, char separator) noexcept {
  const auto end = std::min(list.find(separator), list.size());
  auto element = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  while (element.starts_with(' ') || element.starts_with('\t')) element.remove_prefix(1);
  while (element.ends_with(' ') || element.ends_with('\t')) element.remove_suffix(1);
  return element;
}

// Returns true if the parameter is a weight of zero, such as "q=0" or "Q=0.000". A media type with that
// weight is not acceptable to the client (RFC 9110 §12.4.2).
bool is_no_weight(std::string_view parameter) noexcept {
  if (!equal_ignoring_case(parameter.substr(0, 3), "q=0")) return false;
  return parameter.find_first_not_of("0.", 3) == std::string_view::npos;
}

void write_message(TextWriter& out, const Refusal& refusal) {
  if (!refusal.retry_after_seconds) {
    out << "This request costs more than the limit can ever admit.";
    return;
  }
  out << "Too many requests. Please retry after " << *refusal.retry_after_seconds;
  if (*refusal.retry_after_seconds == 1)
    out << " second.";
  else
    out << " seconds.";
}

}  // namespace

void append_rate_limit_headers(std::string& text, const RateLimitHeaders& s, RateLimitFamilies families) {
  TextWriter out(text, kFixed + 2 * s.rule.size());
  if (families.x) {
    out << "X-RateLimit-Limit: " << s.limit << "\r\nX-RateLimit-Remaining: " << s.remaining;
    if (!s.concurrency) out << "\r\nX-RateLimit-Reset: " << seconds(s.reset_at.time_since_epoch());
    if (s.exceeded) out << "\r\nX-RateLimit-Exceeded: soft";
    out << "\r\n";
  }
  if (!families.ietf) return;
  out << "RateLimit-Policy: \"" << s.rule << "\";q=" << s.limit;
  if (s.concurrency)
    out << ";qu=\"concurrent-requests\"";
  else
    out << ";w=" << std::max<std::uint64_t>(1, seconds(s.window));
  out << "\r\nRateLimit: \"" << s.rule << "\";r=" << s.remaining;
  if (!s.concurrency && s.more_after != base::kForever) out << ";t=" << seconds(s.more_after);
  out << "\r\n";
}

void append_retry_after(std::string& text, std::uint64_t seconds) {
  constexpr std::string_view kBegin = "Retry-After: ";
  TextWriter(text, kBegin.size() + TextWriter::kDigits + 2) << kBegin << seconds << "\r\n";
}

void write_answer(std::string& text, const Answer& a) {
  const auto reason = reason_phrase(a.status);
  TextWriter out(text, kFixed + reason.size() + a.date.size() + a.content_type.size() + a.fields.size() +
                           a.request_id.size() + a.body.size());
  out << "HTTP/1.1 " << a.status << " " << reason << "\r\nDate: " << a.date;
  const bool bodiless = a.status == 204 || a.status == 304;  // these statuses have no body (RFC 9112 §6.3)
  if (!bodiless) out << "\r\nContent-Type: " << a.content_type << "\r\nContent-Length: " << a.body.size();
  if (a.no_store) out << "\r\nCache-Control: no-store";
  out << "\r\n" << a.fields;
  if (!a.request_id.empty()) out << "X-Request-ID: " << a.request_id << "\r\n";
  if (!a.keep_alive)
    out << "Connection: close\r\n";
  else if (a.client_minor_version == 0)
    out << "Connection: keep-alive\r\n";
  out << "\r\n";
  if (!a.omit_body && !bodiless) out << a.body;
}

std::optional<std::uint64_t> retry_after_seconds(base::Duration retry_after, Jitter jitter) noexcept {
  if (retry_after == base::kForever) return std::nullopt;
  const auto least = std::max<std::uint64_t>(1, seconds(retry_after));
  __extension__ using Product = unsigned __int128;
  const auto choices = least * jitter.percent / 100 + 1;
  return least + static_cast<std::uint64_t>(Product{choices} * jitter.chance >> 32U);
}

void append_refusal_json(std::string& text, const Refusal& refusal) {
  const auto error = status_of(refusal.status).error;
  TextWriter out(text, kFixed + error.size() + refusal.rule.size());
  out << R"({"error":")" << error << R"(","message":")";
  write_message(out, refusal);
  out << R"(","rule":")" << refusal.rule << "\"";
  if (refusal.retry_after_seconds) out << R"(,"retry_after_seconds":)" << *refusal.retry_after_seconds;
  out << "}\n";
}

void append_refusal_problem(std::string& text, const Refusal& refusal) {
  const auto reason = reason_phrase(refusal.status);
  TextWriter out(text, kFixed + reason.size() + refusal.rule.size());
  out << R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":")" << reason
      << R"(","status":)" << refusal.status << R"(,"detail":")";
  write_message(out, refusal);
  out << R"(","violated-policies":[")" << refusal.rule << "\"]";
  if (refusal.retry_after_seconds) out << R"(,"retry_after_seconds":)" << *refusal.retry_after_seconds;
  out << "}\n";
}

void append_error_json(std::string& text, unsigned status, std::string_view what) {
  const auto error = status_of(status).error;
  TextWriter(text, kFixed + error.size() + what.size())
      << R"({"error":")" << error << R"(","message":")" << what << "\"}\n";
}

std::string_view reason_phrase(unsigned status) noexcept {
  return status_of(status).reason;
}

bool wants_problem_json(std::string_view accept) noexcept {
  constexpr std::string_view kType = "application/problem+json";
  if (accept.size() < kType.size()) return false;  // as "*/*", which many clients send
  bool wanted = false;
  while (!accept.empty()) {
    auto parameters = take_element(accept, ',');
    const auto range = take_element(parameters, ';');
    if (!equal_ignoring_case(range, kType)) continue;
    wanted = true;
    while (!parameters.empty())
      if (is_no_weight(take_element(parameters, ';'))) wanted = false;
    if (!wanted) return false;
  }
  return wanted;
}

}  // namespace weir::http
