// Responses that weir writes itself: refusals, errors and fixed responses; and the response fields that tell
// a client its rate limit. All functions append to the buffer that is sent.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::http {

// The families of rate limit fields that weir writes.
struct RateLimitFamilies {
  bool x = true;     // X-RateLimit-Limit, -Remaining, -Reset
  bool ietf = true;  // RateLimit-Policy, RateLimit (draft-ietf-httpapi-ratelimit-headers-11)
};

// The usage of a client under one rule, for the rate limit fields. weir reports the rule that refused the
// request. If no rule refused the request, weir reports the rule with the smallest remaining share of its
// limit.
struct RateLimitHeaders {
  std::string_view rule;
  std::uint64_t limit = 0;
  std::uint64_t remaining = 0;
  base::Duration window{};      // parameter `w` of RateLimit-Policy, rounded up to seconds
  base::Duration more_after{};  // parameter `t` of RateLimit; in a refusal also Retry-After
  base::TimePoint reset_at{};   // X-RateLimit-Reset, rounded up to Unix seconds
  bool exceeded = false;        // true: the client is over a soft limit, so weir writes X-RateLimit-Exceeded
  // True for a concurrency limit, whose state does not depend on time. Then weir writes the parameter `qu`,
  // but no `w`, `t` or X-RateLimit-Reset.
  bool concurrency = false;
};

void append_rate_limit_headers(std::string& out, const RateLimitHeaders& rate_limit,
                               RateLimitFamilies families);
// Returns the delay that a Retry-After field asks for: seconds, or a date in one of the three forms of RFC
// 9110 §5.6.7. Returns zero for a past date. Returns nullopt for any other value.
[[nodiscard]] std::optional<base::Duration> parse_retry_after(std::string_view value,
                                                              base::TimePoint now) noexcept;
void append_retry_after(std::string& out, std::uint64_t seconds);

// A complete response that weir itself writes. `fields` may hold further field lines, each with its CRLF.
struct Answer {
  unsigned status = 500;
  std::string_view content_type = "application/json";
  std::string_view body{};
  std::string_view fields{};
  std::string_view date{};        // an HTTP-date (RFC 9110 §5.6.7)
  std::string_view request_id{};  // value of X-Request-ID; empty: the field is omitted
  bool keep_alive = true;
  bool omit_body = false;  // true: the answer is for a HEAD request
  bool no_store = true;
  unsigned client_minor_version = 1;
};
void write_answer(std::string& out, const Answer& answer);

// Lengthens Retry-After by a random number of whole seconds, up to `percent` percent of its value. So clients
// that were refused together do not all retry together.
struct Jitter {
  unsigned percent = 0;
  std::uint32_t chance = 0;  // a random number
};
// Returns the value of Retry-After in seconds, rounded up and at least 1, then lengthened by the jitter.
// Returns nullopt if `retry_after` is base::kForever, because the request can then never succeed.
[[nodiscard]] std::optional<std::uint64_t> retry_after_seconds(base::Duration retry_after,
                                                               Jitter jitter = {}) noexcept;

struct Refusal {
  std::string_view rule;
  unsigned status = 429;
  std::optional<std::uint64_t> retry_after_seconds;
};

// Appends {"error":"rate_limit_exceeded","message":…,"rule":…,"retry_after_seconds":…}
void append_refusal_json(std::string& out, const Refusal& refusal);
// Appends the refusal as application/problem+json (RFC 9457), with the problem type of the IETF draft on rate
// limit fields.
void append_refusal_problem(std::string& out, const Refusal& refusal);

// Appends {"error":"not_found","message":"…"}. `what` must be weir's own text that needs no escaping.
void append_error_json(std::string& out, unsigned status, std::string_view what);

// Returns the reason phrase of a status, such as "Not Found"; "Unknown" for an unregistered status.
[[nodiscard]] std::string_view reason_phrase(unsigned status) noexcept;

// Returns true if an Accept field names application/problem+json with a weight above 0.
[[nodiscard]] bool wants_problem_json(std::string_view accept) noexcept;

}  // namespace weir::http
