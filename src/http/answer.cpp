#include "weir/http/answer.hpp"

#include "weir/http/forwarding.hpp"
#include "weir/http/head.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::http {

namespace {

struct Status {
  unsigned code;
  std::string_view reason;
  std::string_view error;  // the `error` word of our JSON
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

const Status& status_of(unsigned code) noexcept {
  const auto* found =
      std::find_if(kStatuses.begin(), kStatuses.end(), [&](const Status& s) { return s.code == code; });
  return found == kStatuses.end() ? kUnknown : *found;
}

void field(std::string& out, std::string_view name, std::uint64_t value) {
  out += name;
  append_number(out, value);
  out += "\r\n";
}

std::uint64_t seconds(base::Duration d) noexcept {
  return static_cast<std::uint64_t>(base::ceil_seconds(d));
}

void append_message(std::string& out, const Refusal& refusal) {
  if (!refusal.retry_after_seconds) {
    out += "This request costs more than the limit can ever admit.";
    return;
  }
  out += "Too many requests. Please retry after ";
  append_number(out, *refusal.retry_after_seconds);
  out += *refusal.retry_after_seconds == 1 ? " second." : " seconds.";
}

}  // namespace

void append_standing(std::string& out, const Standing& s, RateLimitFamilies families) {
  if (families.x) {
    field(out, "X-RateLimit-Limit: ", s.limit);
    field(out, "X-RateLimit-Remaining: ", s.remaining);
    if (!s.concurrency) field(out, "X-RateLimit-Reset: ", seconds(s.reset_at.time_since_epoch()));
    if (s.exceeded) out += "X-RateLimit-Exceeded: soft\r\n";
  }
  if (!families.ietf) return;
  out += "RateLimit-Policy: \"";
  out += s.rule;
  out += "\";q=";
  append_number(out, s.limit);
  if (s.concurrency) {
    out += ";qu=\"concurrent-requests\"";
  } else {
    out += ";w=";
    append_number(out, std::max<std::uint64_t>(1, seconds(s.window)));
  }
  out += "\r\nRateLimit: \"";
  out += s.rule;
  out += "\";r=";
  append_number(out, s.remaining);
  if (!s.concurrency && s.more_after != base::kForever) {
    out += ";t=";
    append_number(out, seconds(s.more_after));
  }
  out += "\r\n";
}

void write_answer(std::string& out, const Answer& a) {
  out += "HTTP/1.1 ";
  append_number(out, a.status);
  out += ' ';
  out += reason_phrase(a.status);
  out += "\r\nDate: ";
  out += a.date;
  out += "\r\n";
  const bool bodiless = a.status == 204 || a.status == 304;  // RFC 9112 §6.3
  if (!bodiless) {
    out += "Content-Type: ";
    out += a.content_type;
    out += "\r\n";
    field(out, "Content-Length: ", a.body.size());
  }
  if (a.no_store) out += "Cache-Control: no-store\r\n";
  out += a.fields;
  if (!a.keep_alive)
    out += "Connection: close\r\n";
  else if (a.client_minor_version == 0)
    out += "Connection: keep-alive\r\n";
  out += "\r\n";
  if (!a.omit_body && !bodiless) out += a.body;
}

std::optional<std::uint64_t> retry_after_seconds(base::Duration retry_after) noexcept {
  if (retry_after == base::kForever) return std::nullopt;
  return std::max<std::uint64_t>(1, seconds(retry_after));
}

void append_refusal_json(std::string& out, const Refusal& refusal) {
  out += R"({"error":")";
  out += status_of(refusal.status).error;
  out += R"(","message":")";
  append_message(out, refusal);
  out += R"(","rule":")";
  out += refusal.rule;
  out += '"';
  if (refusal.retry_after_seconds) {
    out += R"(,"retry_after_seconds":)";
    append_number(out, *refusal.retry_after_seconds);
  }
  out += "}\n";
}

void append_refusal_problem(std::string& out, const Refusal& refusal) {
  out += R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":")";
  out += reason_phrase(refusal.status);
  out += R"(","status":)";
  append_number(out, refusal.status);
  out += R"(,"detail":")";
  append_message(out, refusal);
  out += R"(","violated-policies":[")";
  out += refusal.rule;
  out += "\"]";
  if (refusal.retry_after_seconds) {
    out += R"(,"retry_after_seconds":)";
    append_number(out, *refusal.retry_after_seconds);
  }
  out += "}\n";
}

void append_error_json(std::string& out, unsigned status, std::string_view what) {
  out += R"({"error":")";
  out += status_of(status).error;
  out += R"(","message":")";
  out += what;
  out += "\"}\n";
}

std::string_view reason_phrase(unsigned status) noexcept {
  return status_of(status).reason;
}

bool wants_problem_json(std::string_view accept) noexcept {
  constexpr std::string_view kProblem = "application/problem+json";
  const auto found =
      std::search(accept.begin(), accept.end(), kProblem.begin(), kProblem.end(), [](char a, char b) {
        return equal_ignoring_case({&a, 1}, {&b, 1});
      });
  return found != accept.end();
}

}  // namespace weir::http
