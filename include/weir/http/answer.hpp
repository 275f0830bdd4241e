// The answers that weir gives itself: refusals, errors, canned responses; and the fields that tell a client
// where it stands. Written in one go into the buffer that is sent.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::http {

// Which families of rate-limit fields are written.
struct RateLimitFamilies {
  bool x = true;     // X-RateLimit-Limit, -Remaining, -Reset
  bool ietf = true;  // RateLimit-Policy, RateLimit (draft-ietf-httpapi-ratelimit-headers-11)
};

// Where a client stands with one rule, in the words of the headers (DESIGN: the tightest rule, or the
// refusing one).
struct Standing {
  std::string_view rule;
  std::uint64_t limit = 0;
  std::uint64_t remaining = 0;
  base::Duration window{};      // rounded up to seconds as `w`
  base::Duration more_after{};  // `t`; on a refusal Retry-After
  base::TimePoint reset_at{};   // X-RateLimit-Reset, rounded up to Unix seconds
  bool exceeded = false;        // over a soft limit: X-RateLimit-Exceeded
  // It limits what is under way at once, which knows no time: `qu`, and neither `w`, `t` nor Reset.
  bool concurrency = false;
};

void append_standing(std::string& out, const Standing& standing, RateLimitFamilies families);
// Returns the time that a Retry-After field asks for: seconds, or a date in any of the three forms of
// RFC 9110 §5.6.7. A date in the past is zero. Returns nothing if `value` is neither.
[[nodiscard]] std::optional<base::Duration> parse_retry_after(std::string_view value,
                                                              base::TimePoint now) noexcept;
// The field line of a refusal.
void append_retry_after(std::string& out, std::uint64_t seconds);

// A complete response of our own. `fields`: further complete field lines.
struct Answer {
  unsigned status = 500;
  std::string_view content_type = "application/json";
  std::string_view body{};
  std::string_view fields{};
  std::string_view date{};        // an HTTP-date (RFC 9110 §5.6.7)
  std::string_view request_id{};  // of X-Request-ID; empty: the field is left out
  bool keep_alive = true;
  bool omit_body = false;  // to HEAD
  bool no_store = true;
  unsigned client_minor_version = 1;
};
void write_answer(std::string& out, const Answer& answer);

// Whole seconds a refused client is told to wait: rounded up, at least 1; nullopt when it would wait for
// ever.
[[nodiscard]] std::optional<std::uint64_t> retry_after_seconds(base::Duration retry_after) noexcept;

struct Refusal {
  std::string_view rule;
  unsigned status = 429;
  std::optional<std::uint64_t> retry_after_seconds;
};

// {"error":"rate_limit_exceeded","message":…,"rule":…,"retry_after_seconds":…}
void append_refusal_json(std::string& out, const Refusal& refusal);
// The same as application/problem+json (RFC 9457) with the draft's problem type.
void append_refusal_problem(std::string& out, const Refusal& refusal);

// {"error":"not_found","message":"…"}; `what` is our own text and needs no escaping.
void append_error_json(std::string& out, unsigned status, std::string_view what);

// "Not Found"; "Unknown" for what is not registered.
[[nodiscard]] std::string_view reason_phrase(unsigned status) noexcept;

// Whether an Accept field asks for application/problem+json, by name and not with a weight of 0.
[[nodiscard]] bool wants_problem_json(std::string_view accept) noexcept;

}  // namespace weir::http
