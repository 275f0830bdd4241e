// The outcomes that weir counts separately: decisions of rules, settlements of charges, ends of clients and
// tunnels. The names are labels of metrics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::observe {

// A rule's decision about a request to which it applies.
enum class RuleOutcome : std::uint8_t {
  Admitted,
  Delayed,  // admitted, with a later departure
  Refused,
  ShadowRefused,  // would have been refused if the rule were enforced
  Overflow,       // charged to the overflow cell, because the key table was full of live keys
  StoreFailed,    // the rule's store did not answer; on_store_failure decided
};
inline constexpr std::size_t kRuleOutcomes = 6;
inline constexpr std::array<const char*, kRuleOutcomes> kRuleOutcomeNames{
    "admitted", "delayed", "refused", "shadow_refused", "overflow", "store_failed"};

// A rule's decision about a WebSocket message that it counts.
enum class MessageOutcome : std::uint8_t {
  Admitted,
  Delayed,  // admitted after a wait
  Refused,  // ended its connection
  ShadowRefused,
};
inline constexpr std::size_t kMessageOutcomes = 4;
inline constexpr std::array<const char*, kMessageOutcomes> kMessageOutcomeNames{"admitted", "delayed",
                                                                                "refused", "shadow_refused"};

// The result of a charge that the answer was to settle.
enum class Settled : std::uint8_t {
  Charged,     // as reserved: because of the status, or because the actual cost was equal
  Refunded,    // refunded whole
  Surplus,     // refunded in part
  Debt,        // the actual cost was more than reserved
  Untold,      // the answer does not tell the cost: the reserved cost remains
  Unreadable,  // the text with the cost is too long, compressed, no JSON or no amount: the reserved cost
               // remains
  Unanswered,  // the upstream got the request and did not answer: the reserved cost remains
};
inline constexpr std::size_t kSettled = 7;
inline constexpr std::array<const char*, kSettled> kSettledNames{"charged", "refunded",   "surplus",   "debt",
                                                                 "untold",  "unreadable", "unanswered"};

// Errors of clients, and how clients left.
enum class ClientError : std::uint8_t {
  BadHead,       // 400: not HTTP, or HTTP that cannot be trusted
  HeadTooLarge,  // 431
  BodyTooLarge,  // 413
  HeadTimeout,   // 408: the head did not end in time
  BodyTimeout,   // the body did not continue in time
  WriteTimeout,  // the client did not read its answer
  Handshake,     // the TLS handshake failed
  Left,          // the client left before its answer was complete
  ProxyHeader,   // the connection did not begin with the PROXY protocol
  SlowBody,      // 408: the body was slower than min_rate
  SlowRead,      // the client read its answer slower than min_rate
  IdleRecords,   // the client sent too many TLS records without data
  Excess,        // 400: more parameters, cookies or values of one name than weir reads
};
inline constexpr std::size_t kClientErrors = 13;
inline constexpr std::array<const char*, kClientErrors> kClientErrorNames{
    "bad_head",           "head_too_large", "body_too_large", "head_timeout", "body_timeout", "write_timeout",
    "handshake",          "left",           "preamble",       "slow_body",    "slow_read",    "idle_records",
    "too_many_parameters"};

// The result of a TLS handshake with a client.
enum class Handshake : std::uint8_t {
  Full,
  Resumed,    // resumed an earlier session
  Left,       // the connection ended during the handshake
  Late,       // it took longer than head_timeout
  Untrusted,  // the client's certificate is missing or not trusted
  Alerted,    // the client sent an alert, mostly because it does not trust weir's certificate
  Failed,     // nothing in common, or no TLS
};
inline constexpr std::size_t kHandshakes = 7;
inline constexpr std::array<const char*, kHandshakes> kHandshakeNames{"full",      "resumed", "left",  "late",
                                                                      "untrusted", "alerted", "failed"};

// How an upgraded connection (status 101) ended.
enum class TunnelEnd : std::uint8_t {
  Closed,       // both sides ended it
  Idle,         // no byte in either direction for timeouts.tunnel
  Stopped,      // weir stops
  ClientBroke,  // the client's connection broke
  ServerBroke,  // the server's connection broke
  Refused,      // the client sent too many messages
  Faulty,       // the client sent an invalid frame, under a rule that counts messages
};
inline constexpr std::size_t kTunnelEnds = 7;
inline constexpr std::array<const char*, kTunnelEnds> kTunnelEndNames{
    "closed", "idle", "stopped", "client_broke", "server_broke", "refused", "faulty"};

// The state of a connection that was closed to make room.
enum class Evicted : std::uint8_t {
  Idle,   // it waited for a request, or for the end of a refused one
  Begun,  // its handshake, PROXY header or request head had been incomplete for a while
};
inline constexpr std::size_t kEvicted = 2;
inline constexpr std::array<const char*, kEvicted> kEvictedNames{"idle", "begun"};

}  // namespace weir::observe
