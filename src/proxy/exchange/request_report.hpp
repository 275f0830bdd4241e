// The facts about one request that metrics and the access log need. Plain values. The exchange records them,
// and report_access() reads them at the end.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/concurrency.hpp"
#include "weir/policy/evaluation.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

// Each time is the epoch if the request did not reach that step.
struct RequestReport {
  base::TimePoint started{};          // when the request's head was complete
  base::TimePoint machine_started{};  // the value of `started` by the machine's clock
  // when weir checked the limits: at `started`, or later once the body had arrived
  base::TimePoint asked_at{};
  base::TimePoint departed{};           // when the request left the queue
  base::TimePoint sent{};               // when the request was sent to the last server tried
  base::TimePoint answered{};           // when the head of that server's answer was complete
  base::Duration redis{0};              // how long the request waited for Redis before the decision
  base::Duration paced{0};              // how long rules with `bandwidth` delayed the two bodies, in total
  std::optional<std::size_t> route;     // index of the route in the configuration
  const std::string* server = nullptr;  // the name of the last server tried
  unsigned status = 0;                  // status of the answer; 0: no answer was started
  unsigned server_status = 0;           // status of the server's answer, if `answered` is set
  std::uint64_t octets_read = 0;        // octets read from the client after the head, with framing
  std::uint64_t body_in = 0;            // octets of the request's body
  std::uint64_t body_out = 0;           // octets of the answer's body; for a tunnel, those sent to the client
  std::uint64_t tunnel_in = 0;          // octets that the tunnel sent to the server
  policy::Decision decision{};
  // True if `decision` is valid. Otherwise `rejecting_rule` or `closed` may say why it is not.
  bool decided = false;
  // The rule for which weir rejected the request before it checked any limit; null: no such rejection.
  // Usually the request lacks a value that the rule needs.
  const policy::Rule* rejecting_rule = nullptr;
  // True: more rules apply than weir can charge. `rejecting_rule` is the first rule that does not fit.
  bool too_many_rules = false;
  // The rule whose store was unreachable, if weir refused for that reason.
  const policy::Rule* closed = nullptr;
  std::string_view failure{};  // value of `failure` in the access log; static text

  // The members below belong to questions, which reach no server.
  bool is_question = false;
  bool admitted = false;   // true: no rule refuses the question
  base::Duration wait{0};  // how long the asker must wait for the departure of the request
  // how the request ended at the asker's server, as the asker reported it; absent: the asker reported nothing
  std::optional<limit::Ending> reported_ending{};
};

}  // namespace weir::proxy
