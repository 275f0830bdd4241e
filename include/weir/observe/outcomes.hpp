// The outcomes that weir counts separately: decisions of rules, settlements of charges, and how clients,
// connections and tunnels end. The names below are labels of metrics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::observe {

// A rule's decision about a request to which the rule applies.
enum class RuleOutcome : std::uint8_t {
  Admitted,
  Delayed,  // admitted, with a later departure
  Refused,
  ShadowRefused,  // the rule is in shadow mode; if enforced, it would have refused the request
  Overflow,       // charged to a state (overflow cell) that all keys without a slot in the table share
  StoreFailed,    // the rule's store (Redis) did not answer, so on_store_failure decided
};
inline constexpr std::size_t kRuleOutcomes = 6;
inline constexpr std::array<const char*, kRuleOutcomes> kRuleOutcomeNames{
    "admitted", "delayed", "refused", "shadow_refused", "overflow", "store_failed"};

// A rule's decision about a message of a WebSocket or a gRPC call.
enum class MessageOutcome : std::uint8_t {
  Admitted,
  Delayed,  // admitted after a wait
  Refused,  // refused; weir ended the WebSocket or the call
  ShadowRefused,
};
inline constexpr std::size_t kMessageOutcomes = 4;
inline constexpr std::array<const char*, kMessageOutcomes> kMessageOutcomeNames{"admitted", "delayed",
                                                                                "refused", "shadow_refused"};

// The result of settling: the server's answer shows the actual cost, and weir corrects the charge.
enum class Settled : std::uint8_t {
  Charged,   // the charge stays: the answer's status requires it, or the actual cost equals the reserved cost
  Refunded,  // the whole charge is refunded
  Surplus,   // a part is refunded: the actual cost was less than the reserved cost
  Debt,      // more is charged: the actual cost was more than the reserved cost
  Untold,    // the answer does not state the cost, so the reserved cost stays charged
  // The cost in the answer cannot be read: the text is too long, compressed, not JSON, or has no valid
  // amount. The reserved cost stays charged.
  Unreadable,
  Unanswered,  // the upstream got the request but did not answer, so the reserved cost stays charged
  Estimated,   // a stream states no cost, so its estimate is charged
  Cut,         // weir ended the stream when the client's budget was used up; the estimate is charged
};
inline constexpr std::size_t kSettled = 9;
inline constexpr std::array<const char*, kSettled> kSettledNames{
    "charged", "refunded", "surplus", "debt", "untold", "unreadable", "unanswered", "estimated", "cut"};

// Errors of clients, and the ways in which clients disconnect.
enum class ClientError : std::uint8_t {
  BadHead,       // 400: not HTTP, or not safe to interpret
  HeadTooLarge,  // 431: the request head is larger than allowed
  BodyTooLarge,  // 413: the request body is larger than allowed
  HeadTimeout,   // 408: the head was not complete in time
  BodyTimeout,   // the next part of the body did not arrive in time
  WriteTimeout,  // the client did not read its answer
  Handshake,     // the TLS handshake failed
  Left,          // the client disconnected before it had its complete answer
  ProxyHeader,   // the connection did not begin with a valid PROXY header
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
  Resumed,    // succeeded by resuming an earlier session
  Left,       // the client disconnected during the handshake
  Late,       // the handshake took longer than head_timeout
  Untrusted,  // the client's certificate is missing or not trusted
  // The client sent a TLS alert, in most cases because it does not trust weir's certificate.
  Alerted,
  Failed,  // no common version or cipher, or not TLS at all
};
inline constexpr std::size_t kHandshakes = 7;
inline constexpr std::array<const char*, kHandshakes> kHandshakeNames{"full",      "resumed", "left",  "late",
                                                                      "untrusted", "alerted", "failed"};

// How an upgraded connection (status 101) ended.
enum class TunnelEnd : std::uint8_t {
  Closed,       // both sides closed the connection
  Idle,         // timeouts.tunnel passed without a byte in either direction
  Stopped,      // weir is shutting down
  ClientBroke,  // the client's connection broke
  ServerBroke,  // the server's connection broke
  Refused,      // a rule refused a message of the client
  Faulty,       // the client sent an invalid frame while a rule counted its messages
};
inline constexpr std::size_t kTunnelEnds = 7;
inline constexpr std::array<const char*, kTunnelEnds> kTunnelEndNames{
    "closed", "idle", "stopped", "client_broke", "server_broke", "refused", "faulty"};

// The state of a connection that weir closed to make room for other clients.
enum class Evicted : std::uint8_t {
  Idle,   // the connection was waiting for a request, or for the end of a refused request
  Begun,  // the TLS handshake, PROXY header or request head has begun and is incomplete
};
inline constexpr std::size_t kEvicted = 2;
inline constexpr std::array<const char*, kEvicted> kEvictedNames{"idle", "begun"};

// The reason why weir ended an HTTP/2 connection with GOAWAY.
enum class Goaway : std::uint8_t {
  Drain,         // weir is stopping, the listener was closed, or another process takes over
  Idle,          // idle_timeout has passed
  Silent,        // the client did not answer a PING
  Fault,         // the client broke the protocol
  Head,          // a request head was far larger than max_head
  Resets,        // too many resets of streams
  Settings,      // too many SETTINGS frames
  Ping,          // too many PING frames
  Priority,      // too many PRIORITY frames
  WindowUpdate,  // too many WINDOW_UPDATE frames
  EmptyData,     // too many DATA frames without data
  Other,         // too many frames of other types
};
inline constexpr std::size_t kGoaways = 12;
inline constexpr std::array<const char*, kGoaways> kGoawayNames{
    "drain",    "idle", "silent",   "fault",         "head",       "resets",
    "settings", "ping", "priority", "window_update", "empty_data", "other"};

// How the wait of a request for the key of its token ended.
enum class TokenKeyWaited : std::uint8_t {
  Found,        // a fetch brought the key
  Unknown,      // the issuer answered that it does not have the key
  Unavailable,  // no fetch succeeded in time
};
inline constexpr std::size_t kTokenKeyWaited = 3;
inline constexpr std::array<const char*, kTokenKeyWaited> kTokenKeyWaitedNames{"found", "unknown",
                                                                               "unavailable"};

// The cause of the reset of an HTTP/2 stream.
enum class ResetBy : std::uint8_t {
  Client,   // the client cancelled the request
  Fault,    // weir reset the stream because of the client's fault
  Refused,  // weir reset the stream because too many streams are open
};
inline constexpr std::size_t kResetBy = 3;
inline constexpr std::array<const char*, kResetBy> kResetByNames{"client", "fault", "refused"};

}  // namespace weir::observe
