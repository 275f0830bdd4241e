// Writes the rate-limit header fields of an answer and the body of a refusal, for exchanges and for
// `weir explain`. Pure.
#pragma once

#include "weir/http/answer.hpp"
#include "weir/http/head.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/proxy/server_settings.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

// Appends the rate-limit fields of the decision's rule. Appends nothing if the decision has no rule.
// `reset_at`: see AdmissionController::reset_at().
void append_rate_limit_headers(std::string& fields, const policy::Decision& decision,
                               const ServerSettings& server, base::TimePoint reset_at);

// Merges the fields of an upstream that also limits requests (`theirs`) with those of weir (`ours`).
// RateLimit fields are lists, so the fields of both sides are kept. But a client reads only one
// X-RateLimit-Limit, -Remaining and -Reset. So only the side with less remaining keeps these three fields.
// `ours`: as append_rate_limit_headers() writes them.
void keep_stricter(http::Fields& theirs, std::string& ours);

// Turns a decision to wait under `rule` into a refusal with `retry_after`. Used if the client already has as
// many requests in the queue as it may have, or if the wait failed.
void refuse_wait(policy::Decision& decision, const policy::Rule& rule, const limit::Limiter& limiter,
                 base::Duration retry_after, base::TimePoint now) noexcept;

// Writes the refusal of a rule: appends Retry-After and the rule's own fields to `fields`, and writes `body`.
// Returns the answer, which refers to `fields`, `body` and the rule. `retry_after_seconds`: nullopt if the
// request can never succeed. `request`: the fields of the request, which determine the format of the body.
// REQUIRES an empty body.
[[nodiscard]] http::Answer make_refusal(std::string& fields, std::string& body, const policy::Rule& rule,
                                        std::optional<std::uint64_t> retry_after_seconds,
                                        const http::Fields& request);

// Writes an error that weir itself reports: appends the fields that the status requires, and the body.
// REQUIRES an empty body.
void append_error(std::string& fields, std::string& body, unsigned status, std::string_view what,
                  const policy::ClientSettings& client);

// Writes the error for a request that lacks something that a rule needs. REQUIRES an empty body.
void append_rejection(std::string& fields, std::string& body, const policy::Rejection& rejection,
                      const policy::ClientSettings& client);

}  // namespace weir::proxy
