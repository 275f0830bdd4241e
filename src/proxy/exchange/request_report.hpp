// What there is to account for of one request. Plain values: the exchange fills them in on its way, and
// report_access() reads them once it has ended.
#pragma once

#include "weir/base/time.hpp"
#include "weir/policy/evaluation.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

// A time is the epoch if the request did not come so far.
struct RequestReport {
  base::TimePoint started{};            // the head was complete
  base::TimePoint machine_started{};    // the same by the machine's clock, which is read this once
  base::TimePoint asked_at{};           // the limits were asked: `started`, or when the body had come
  base::TimePoint departed{};           // the request left the queue
  base::TimePoint sent{};               // it went to the server that was asked last
  base::TimePoint answered{};           // the head of that server's answer was whole
  std::optional<std::size_t> route;     // of the configuration
  const std::string* server = nullptr;  // the name of the server that was asked last
  unsigned status = 0;                  // of the answer; 0: no answer was begun
  unsigned server_status = 0;           // of the server's answer, if `answered`
  std::uint64_t octets_read = 0;        // from the client after the head, framing included
  std::uint64_t body_in = 0;            // octets of the request's body
  std::uint64_t body_out = 0;           // octets of the answer's body, or of a tunnel to the client
  std::uint64_t tunnel_in = 0;          // octets of a tunnel to the server
  policy::Decision decision{};
  bool decided = false;                  // `decision` is one; else
  const policy::Rule* unmet = nullptr;   // the rule whose objection was answered
  const policy::Rule* closed = nullptr;  // the rule whose store was away
  std::string_view failure{};            // a word for the log; static text
};

}  // namespace weir::proxy
