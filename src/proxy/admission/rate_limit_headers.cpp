#include "proxy/admission/rate_limit_headers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

namespace weir::proxy {

namespace {

constexpr std::string_view kRemaining = "X-RateLimit-Remaining";
constexpr std::array<std::string_view, 3> kXRateLimitFields{"X-RateLimit-Limit", kRemaining,
                                                            "X-RateLimit-Reset"};

bool is_x_rate_limit(std::string_view name) noexcept {
  return name.size() >= kXRateLimitFields[0].size() && name.size() <= kRemaining.size() &&
         std::any_of(kXRateLimitFields.begin(), kXRateLimitFields.end(),
                     [&](std::string_view one) { return http::equal_ignoring_case(name, one); });
}

std::optional<std::uint64_t> whole_number(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// Removes the X-RateLimit lines. Returns the value of X-RateLimit-Remaining; nullopt if there is no such
// line.
std::optional<std::uint64_t> take_lines(std::string& lines) {
  std::optional<std::uint64_t> left;
  for (std::size_t at = 0; at < lines.size();) {
    const auto line = std::string_view(lines).substr(at, lines.find("\r\n", at) - at);
    const auto name = line.substr(0, line.find(':'));
    if (name == kRemaining) left = whole_number(line.substr(name.size() + 2));
    if (is_x_rate_limit(name))
      lines.erase(at, line.size() + 2);
    else
      at += line.size() + 2;
  }
  return left;
}

// Returns the challenge (WWW-Authenticate) of a 401 (RFC 9110 §15.5.2). "ApiKey" is not a registered scheme,
// because there is none for API keys in header fields.
std::string_view challenge_to(const policy::ClientSettings& client) noexcept {
  const bool bearer = client.api_key.kind == policy::Source::Kind::Bearer || client.tokens.has_value();
  return bearer ? "WWW-Authenticate: Bearer\r\n" : "WWW-Authenticate: ApiKey\r\n";
}

// Appends the challenge for a token that weir rejects, with the reason. Must not be called if the request has
// no token: its challenge should contain no error (RFC 6750 §3).
void append_challenge(std::string& fields, const policy::Rejection& rejection) {
  fields += R"(WWW-Authenticate: Bearer error="invalid_token", error_description=")";
  fields += policy::sentence_of(*rejection.token);
  fields += "\"\r\n";
}

}  // namespace

void refuse_wait(policy::Decision& decision, const policy::Rule& rule, const limit::Limiter& limiter,
                 base::Duration retry_after, base::TimePoint now) noexcept {
  decision.verdict = policy::Verdict::Reject;
  decision.rule = &rule;
  decision.limiter = &limiter;
  decision.outcome.allowed = false;
  decision.outcome.remaining = 0;
  decision.outcome.retry_after = decision.outcome.more_after = policy::wait_under(rule, retry_after, now);
}

void append_error(std::string& fields, std::string& body, unsigned status, std::string_view what,
                  const policy::ClientSettings& client) {
  http::append_error_json(body, status, what);
  if (status == 401) fields += challenge_to(client);
}

void append_rejection(std::string& fields, std::string& body, const policy::Rejection& rejection,
                      const policy::ClientSettings& client) {
  const auto status = policy::status_of(rejection);
  // RFC 9110 §15.5.16 recommends this field if the encoding is the cause of a 415.
  if (rejection.body == policy::RequestBody::State::Coded) fields = "Accept-Encoding: identity\r\n";
  if (status == 401 && rejection.token && *rejection.token != policy::TokenFault::Missing) {
    append_challenge(fields, rejection);
    return http::append_error_json(body, status, policy::describe(rejection));
  }
  append_error(fields, body, status, policy::describe(rejection), client);
}

void keep_stricter(http::Fields& theirs, std::string& ours) {
  const auto is_x_field = [](const http::Field& field) { return is_x_rate_limit(field.name); };
  if (std::none_of(theirs.begin(), theirs.end(), is_x_field)) return;
  std::optional<std::uint64_t> their_left;
  for (const auto& field : theirs)
    if (http::equal_ignoring_case(field.name, kRemaining))
      if (const auto left = whole_number(field.value))
        their_left = std::min(*left, their_left.value_or(*left));
  auto others = ours;
  const auto our_left = take_lines(others);
  if (!our_left) return;
  if (their_left && *their_left <= *our_left)
    ours = std::move(others);
  else
    theirs.erase(std::remove_if(theirs.begin(), theirs.end(), is_x_field), theirs.end());
}

void append_rate_limit_headers(std::string& fields, const policy::Decision& decision,
                               const ServerSettings& server, base::TimePoint reset_at) {
  if (decision.rule == nullptr) return;
  const auto& outcome = decision.outcome;
  const auto limit = limit::quota_of(*decision.limiter, outcome);
  http::append_rate_limit_headers(fields,
                                  {.rule = decision.rule->name,
                                   .limit = limit,
                                   .remaining = std::min<std::uint64_t>(outcome.remaining, limit),
                                   .window = limit::window(*decision.limiter),
                                   .more_after = outcome.more_after,
                                   .reset_at = reset_at,
                                   .exceeded = decision.exceeded,
                                   .concurrency = limit::holds(*decision.limiter)},
                                  {.x = server.x_ratelimit, .ietf = server.ietf_ratelimit});
}

http::Answer make_refusal(std::string& fields, std::string& body, const policy::Rule& rule,
                          std::optional<std::uint64_t> retry_after_seconds, const http::Fields& request) {
  const http::Refusal refusal{
      .rule = rule.name, .status = rule.refusal_status, .retry_after_seconds = retry_after_seconds};
  if (refusal.retry_after_seconds) http::append_retry_after(fields, *refusal.retry_after_seconds);
  fields += rule.refusal_fields;
  const auto* accept = http::find_field(request, http::FieldId::Accept);
  const bool problem = accept != nullptr && http::wants_problem_json(accept->value);
  if (rule.refusal_body)
    body = *rule.refusal_body;
  else if (problem)
    http::append_refusal_problem(body, refusal);
  else
    http::append_refusal_json(body, refusal);
  return {.status = refusal.status,
          .content_type = rule.refusal_body ? std::string_view(rule.refusal_content_type)
                          : problem         ? "application/problem+json"
                                            : "application/json",
          .body = body,
          .fields = fields};
}

}  // namespace weir::proxy
