// What there is to say of one request once it has ended, however it ended; and the line of the access log
// that says it.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/siphash.hpp"
#include "weir/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::observe {

// Views: valid during the call that the record is given to, and no longer. What is empty or absent is left
// out of the line; raw credentials have no field here.
struct AccessRecord {
  base::TimePoint start{};     // when the head was complete
  base::Duration total{0};     // from there to the end
  base::Duration queued{0};    // of it, waiting for the departure
  base::Duration upstream{0};  // of it, from the request sent to the head of the answer
  base::IpAddress client;      // who asked, behind trusted proxies
  std::string_view method;
  std::string_view target;  // as it came, query included
  std::string_view host;
  std::string_view route;       // its name; empty: none matched
  unsigned status = 0;          // 0: no answer was begun
  std::uint64_t bytes_in = 0;   // of the body
  std::uint64_t bytes_out = 0;  // of the body
  std::string_view verdict;     // "forward", "delay", "reject"; empty: it never came to a decision
  std::string_view rule;        // the one the decision names
  std::optional<base::Digest128>
      key;                  // the client's name in that rule: a keyed digest, never what it was made of
  std::string_view server;  // of the upstream that answered
  std::string_view request_id;
  std::string_view traceparent;  // of a trusted peer alone (W3C Trace Context)
  std::string_view user_agent;
  std::string_view error;  // how it failed, in a word of ours: "client_left", "connect_failed"
};

// Appends one line of JSON, its newline included. Allocates only when `out` has to grow.
void append_json(std::string& out, const AccessRecord& record);

// Who takes the records of one worker. Called on that worker's thread, on every ending of every request.
class AccessSink {
 public:
  virtual ~AccessSink() = default;
  virtual void record(const AccessRecord& record) = 0;
};

}  // namespace weir::observe
