// The reasons why weir rejects a bearer token, and their names in logs, metrics and responses. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::policy {

enum class TokenFault : std::uint8_t {
  Malformed,    // not a signed token, or its contents are not JSON
  Algorithm,    // the token names an algorithm that is not configured
  Signature,    // not signed with the configured key
  Expired,      // `exp` has passed
  NotYet,       // `nbf` has not come yet
  Issuer,       // `iss` is wrong or missing
  Audience,     // `aud` is wrong or missing
  Missing,      // the request has no token, and a rule requires one
  Claim,        // a claim is missing: `exp` with `require_exp`, or a claim that a rule requires
  Key,          // none of the issuer's keys has the token's `kid`, or several keys fit the token
  Extension,    // the token requires an extension (`crit`, RFC 7515 §4.1.11), and weir supports none
  Unavailable,  // weir could not fetch the keys of the issuer in time, so the token may be valid
};
inline constexpr std::size_t kTokenFaults = 12;

// The metric labels of the faults, also shown by `weir explain`.
inline constexpr std::array<std::string_view, kTokenFaults> kTokenFaultNames{
    "malformed", "algorithm", "signature", "expired", "not_yet",   "issuer",
    "audience",  "missing",   "claim",     "key",     "extension", "unavailable"};
// The texts of the faults in the field `error` of the access log.
inline constexpr std::array<std::string_view, kTokenFaults> kTokenFaultErrors{
    "token_malformed", "token_algorithm", "token_signature", "token_expired",
    "token_not_yet",   "token_issuer",    "token_audience",  "token_missing",
    "token_claim",     "token_key",       "token_extension", "token_unavailable"};
// The sentences in the response to the client. The sentences have no quotes or backslashes, as RFC 6750 §3
// requires of error_description.
inline constexpr std::array<std::string_view, kTokenFaults> kTokenFaultSentences{
    "the token is malformed",
    "the token is not signed with the algorithm that is expected",
    "the signature of the token is wrong",
    "the token has expired",
    "the token is not valid yet",
    "the token is of another issuer",
    "the token is for another audience",
    "the request has no token",
    "the token lacks a claim that is required",
    "the token is signed with a key that is not known",
    "the token requires an extension that weir does not support",
    "the keys of the issuer of the token cannot be fetched now"};

[[nodiscard]] constexpr std::string_view name_of(TokenFault fault) noexcept {
  return kTokenFaultNames[static_cast<std::size_t>(fault)];
}
[[nodiscard]] constexpr std::string_view error_of(TokenFault fault) noexcept {
  return kTokenFaultErrors[static_cast<std::size_t>(fault)];
}
[[nodiscard]] constexpr std::string_view sentence_of(TokenFault fault) noexcept {
  return kTokenFaultSentences[static_cast<std::size_t>(fault)];
}

}  // namespace weir::policy
