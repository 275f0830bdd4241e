// Regular expressions for strings whose content has a syntax of its own, such as durations and addresses.
//
// The expressions use the dialect of JSON Schema (ECMA 262 without look-around), so that every editor
// understands them. Only editors use the expressions; weir itself parses the strings. A test compares each
// expression with the function that parses such strings. An expression matches every string that its function
// accepts. It may also match a string that the function rejects for its value, such as a number that is too
// large.
#pragma once

#include <string_view>

namespace weir::config::pattern {

// The macros below are parts of patterns. A part that has alternatives must be in "(?:…)" if something
// follows it. A whole pattern must match from ^ to $.
#define WEIR_PERIOD "(?:us|ms|s|sec|m|min|h|hour|d|days?)"
#define WEIR_COUNT "0*(?:[1-9][0-9]{0,8}|1000000000)"
#define WEIR_PORT "0*(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
#define WEIR_HOST "(?:\\[[^\\[\\] \\t]+\\]|[^:*\\[\\] \\t][^:\\[\\] \\t]*|\\*[^:\\[\\] \\t]+)"
#define WEIR_URL_HOST "(?:\\[[^\\[\\]/?#@]+\\]|[^:\\[\\]/?#@]+)"
#define WEIR_STATUS "[1-5][0-9]{2}"
#define WEIR_PLACE                                                                             \
  "(?:ip|api_key|user|org|tier|service|device|country|city|region|asn|route|host|method|path|" \
  "upstream|domain|cert:subject|path:[1-9][0-9]{0,2}|header:[!#$%&'*+.^_`~0-9A-Za-z-]+|"       \
  "cookie:[^|=; \\t]+|(?:query|claim|form|descriptor):[^|]+|json:/[^|\"\\\\]{0,127})"

inline constexpr std::string_view kDuration = "[0-9]+" WEIR_PERIOD;
inline constexpr std::string_view kSize = "[0-9]+(?:B|[kMG]B|[KMG]iB)?";
inline constexpr std::string_view kRate = WEIR_COUNT "/(?:0*[1-9][0-9]*)?" WEIR_PERIOD;
inline constexpr std::string_view kLimit = WEIR_COUNT "/(?:week|month|(?:0*[1-9][0-9]*)?" WEIR_PERIOD ")";
// A rate of octets: "1MiB/s".
inline constexpr std::string_view kBandwidth = "[0-9]+(?:B|[kMG]B|[KMG]iB)?/(?:0*[1-9][0-9]*)?" WEIR_PERIOD;
inline constexpr std::string_view kAddress = "unix:/.{0,106}|" WEIR_HOST ":" WEIR_PORT;
inline constexpr std::string_view kServerAddress =
    "unix:/.{0,106}|" WEIR_HOST ":" WEIR_PORT "|https?://" WEIR_URL_HOST "(?::" WEIR_PORT
    ")?|(?:https\\+)?srv:[A-Za-z0-9._-]{1,253}";
inline constexpr std::string_view kHostAndPort = WEIR_HOST ":" WEIR_PORT;
inline constexpr std::string_view kStatuses = "[1-5]xx|" WEIR_STATUS "(?:-" WEIR_STATUS ")?";
inline constexpr std::string_view kGrpcStatus =
    "OK|CANCELLED|UNKNOWN|INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|PERMISSION_DENIED|"
    "RESOURCE_EXHAUSTED|FAILED_PRECONDITION|ABORTED|OUT_OF_RANGE|UNIMPLEMENTED|INTERNAL|UNAVAILABLE|DATA_"
    "LOSS|"
    "UNAUTHENTICATED|0*(?:[0-9]|1[0-6])";
inline constexpr std::string_view kRetryOn = "broken|late|[2-5]xx|[2-5][0-9]{2}(?:-[2-5][0-9]{2})?";
inline constexpr std::string_view kPath = "/[^?]*|~.*";
inline constexpr std::string_view kHours =
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]-(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00)";
inline constexpr std::string_view kCountry = "[A-Z]{2}";
inline constexpr std::string_view kRegion = "[A-Z]{2}-[A-Z0-9]{1,3}";
inline constexpr std::string_view kAsn = "AS(?:[0-9]|[1-9][0-9]{1,9})";
inline constexpr std::string_view kKeyPart = WEIR_PLACE "(?:\\|" WEIR_PLACE ")*";
// By how much a soft limit exceeds the limit, as a percentage.
inline constexpr std::string_view kMargin = "0*(?:[1-9][0-9]?|100)%";
inline constexpr std::string_view kBudget = "0*(?:[0-9]{1,2}|100)%";  // retries as a percentage of requests
// Prefetched units (`lease`), as a percentage of the limit.
inline constexpr std::string_view kLease = "0*(?:[1-9]|1[0-9]|2[0-5])%";
// The lowest share of a limit (`adapt`), a multiple of 5 %.
inline constexpr std::string_view kFloor = "0*(?:5|[1-9][05])%";
inline constexpr std::string_view kShareBelowAll = "0*[1-9][0-9]?%";  // a percentage from 1 to 99
// A percentage with up to three decimals: "0.25%".
inline constexpr std::string_view kPortion = "0*(?:[0-9]{1,2}(?:\\.[0-9]{1,3})?|100(?:\\.0{1,3})?)%";
inline constexpr std::string_view kName = "[ !#-\\[\\]-~]{1,128}";  // printable ASCII without " and backslash
inline constexpr std::string_view kRedisUrl = "(?:rediss?|unix)://.+";
inline constexpr std::string_view kWebhook = "https?://" WEIR_URL_HOST "(?::" WEIR_PORT ")?(?:[/?#].*)?";
inline constexpr std::string_view kRooted = "/.*";
inline constexpr std::string_view kDay = "mon|tue|wed|thu|fri|sat|sun";
// An origin as browsers write it: no path, lower case.
inline constexpr std::string_view kOrigin =
    "\\*|[a-z][a-z0-9+.-]*://(?:\\[[0-9a-f:.]+\\]|[a-z0-9._-]+)(?::[1-9][0-9]{0,4})?";
inline constexpr std::string_view kHeaderFamily = "x|ietf";
inline constexpr std::string_view kProtocol = "http/1\\.1|h2c?";

#undef WEIR_PERIOD
#undef WEIR_COUNT
#undef WEIR_PORT
#undef WEIR_HOST
#undef WEIR_URL_HOST
#undef WEIR_STATUS
#undef WEIR_PLACE

}  // namespace weir::config::pattern
