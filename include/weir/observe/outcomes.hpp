// What is told apart where weir counts: what rules said, what became of charges, how clients and tunnels
// ended. The names are the labels of metrics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::observe {

// What a rule said to a request that met it.
enum class RuleOutcome : std::uint8_t {
  Admitted,
  Delayed,  // admitted, to depart later
  Refused,
  ShadowRefused,  // would have been refused, were the rule enforced
  Overflow,       // charged to the overflow cell: the key table was full of live keys
  StoreFailed,    // its store did not answer; on_store_failure decided
};
inline constexpr std::size_t kRuleOutcomes = 6;
inline constexpr std::array<const char*, kRuleOutcomes> kRuleOutcomeNames{
    "admitted", "delayed", "refused", "shadow_refused", "overflow", "store_failed"};

// What a rule said to a WebSocket message that it counts.
enum class MessageOutcome : std::uint8_t {
  Admitted,
  Delayed,  // admitted, after it had to wait
  Refused,  // it ended its connection
  ShadowRefused,
};
inline constexpr std::size_t kMessageOutcomes = 4;
inline constexpr std::array<const char*, kMessageOutcomes> kMessageOutcomeNames{"admitted", "delayed",
                                                                                "refused", "shadow_refused"};

// What became of a charge that its answer was to settle.
enum class Settled : std::uint8_t {
  Charged,     // as it was held: by the status, or because so much was reserved
  Refunded,    // given back whole
  Surplus,     // given back in part
  Debt,        // more was charged than was reserved
  Untold,      // the answer does not say what it costs: the reserve stands
  Unreadable,  // what says it is too long, compressed, no JSON or no amount: the reserve stands
  Unanswered,  // it was handed to an upstream and nothing came back: what was held stands
};
inline constexpr std::size_t kSettled = 7;
inline constexpr std::array<const char*, kSettled> kSettledNames{"charged", "refunded",   "surplus",   "debt",
                                                                 "untold",  "unreadable", "unanswered"};

// What a client did wrong, or how it went away.
enum class ClientError : std::uint8_t {
  BadHead,       // 400: not HTTP, or HTTP that is not to be trusted
  HeadTooLarge,  // 431
  BodyTooLarge,  // 413
  HeadTimeout,   // 408: the head did not end in time
  BodyTimeout,   // the body did not come on in time
  WriteTimeout,  // it did not read its answer
  Handshake,     // TLS did not come about
  Left,          // it went away before its answer was complete
  Preamble,      // what it began with is not the PROXY protocol
  SlowBody,      // 408: its body came slower than min_rate
  SlowRead,      // it took its answer slower than min_rate
  IdleRecords,   // it sent records of TLS without data, more than are heard out
  Excess,        // 400: it has more parameters, cookies or values of one name than are read
};
inline constexpr std::size_t kClientErrors = 13;
inline constexpr std::array<const char*, kClientErrors> kClientErrorNames{
    "bad_head",           "head_too_large", "body_too_large", "head_timeout", "body_timeout", "write_timeout",
    "handshake",          "left",           "preamble",       "slow_body",    "slow_read",    "idle_records",
    "too_many_parameters"};

// What came of a TLS handshake with a client.
enum class Handshake : std::uint8_t {
  Full,
  Resumed,    // by a session of an earlier one
  Left,       // the connection ended within it
  Late,       // it took longer than head_timeout
  Untrusted,  // the client's certificate is missing, or not believed
  Alerted,    // the client would not go on: it does not believe the certificate here, mostly
  Failed,     // nothing in common, or no TLS
};
inline constexpr std::size_t kHandshakes = 7;
inline constexpr std::array<const char*, kHandshakes> kHandshakeNames{"full",      "resumed", "left",  "late",
                                                                      "untrusted", "alerted", "failed"};

// How a connection that had changed its protocol ended.
enum class TunnelEnd : std::uint8_t {
  Closed,       // both sides ended it
  Idle,         // no byte went either way for timeouts.tunnel
  Stopped,      // weir stops
  ClientBroke,  // the client's connection broke
  ServerBroke,  // the server's connection broke
  Refused,      // the client sent more messages than it may
  Faulty,       // the client sent what is no frame, under a rule that counts messages
};
inline constexpr std::size_t kTunnelEnds = 7;
inline constexpr std::array<const char*, kTunnelEnds> kTunnelEndNames{
    "closed", "idle", "stopped", "client_broke", "server_broke", "refused", "faulty"};

// What a connection was that was closed to make room.
enum class Evicted : std::uint8_t {
  Idle,   // it waited for a request, or for the end of what was refused
  Begun,  // its handshake, preamble or request's head was half come for a while
};
inline constexpr std::size_t kEvicted = 2;
inline constexpr std::array<const char*, kEvicted> kEvictedNames{"idle", "begun"};

}  // namespace weir::observe
