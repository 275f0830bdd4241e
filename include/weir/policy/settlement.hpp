// Settles a charge by the response. The HTTP status decides whether the request is charged; for a gRPC call,
// the gRPC status may decide. The amount is a number in the response (in a header, the JSON body or a
// stream of JSON records), or the size of the bodies that weir forwarded.
//
// Pure. If an upstream states an invalid amount, the result says so, and the amount reserved in advance
// remains charged.
#pragma once

#include "weir/base/result.hpp"
#include "weir/http/head.hpp"
#include "weir/limit/rate.hpp"
#include "weir/policy/cost.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// A range of HTTP statuses from `first` to `last`, both included.
struct StatusRange {
  unsigned first = 0, last = 0;
  friend bool operator==(const StatusRange&, const StatusRange&) = default;
};

// Parses "401", "5xx" or "500-504".
[[nodiscard]] base::Result<StatusRange> parse_statuses(std::string_view text);

// How weir estimates the cost of a streamed response while it forwards the response.
struct StreamEstimate {
  limit::Cost per_event = 1;
  bool cut = false;  // true: weir ends the stream when the client's budget is used up
  friend bool operator==(const StreamEstimate&, const StreamEstimate&) = default;
};

// The bodies whose octets make up a cost.
enum class Bodies : std::uint8_t { Response, Request, Both };

struct Settlement {
  // The source of the cost.
  enum class Kind : std::uint8_t {
    None,    // nothing: the cost is known in advance, and the status decides whether it is charged
    Header,  // a header of the response
    Json,    // the body of the response: JSON, or a stream of JSON records (http/event_stream.hpp)
    Bytes,   // the octets of the bodies that weir forwarded
  };
  // Only responses with these statuses are charged. If the list is empty, all responses are charged, or none
  // if charged_calls is set.
  std::vector<StatusRange> charged{};
  // Bit N is set if gRPC calls that end with the status N are charged. If the value is 0, `charged` decides
  // for gRPC calls, too.
  std::uint32_t charged_calls = 0;
  Kind kind = Kind::None;
  std::string name{};             // for Header: the name of the header
  std::vector<CostTerm> terms{};  // for Json: the cost is the weighted sum of these terms, rounded up
  std::uint32_t scale = 0;        // 0: only whole numbers are valid; else numbers are multiplied by `scale`
  // Kind Json: if the body is longer than this, the reserved amount remains charged. Streams may have any
  // length.
  std::uint64_t max_body = 64 << 10;
  std::optional<StreamEstimate> stream{};  // kind Json: how a stream is charged while weir forwards it
  Bodies bodies = Bodies::Response;        // kind Bytes: the bodies that count
  std::uint64_t per = 1 << 10;             // kind Bytes: how many octets cost one unit; above 0
};

// Returns true if a response with this HTTP status is charged. REQUIRES: the request is not a gRPC call, or
// charged_calls is 0.
[[nodiscard]] bool is_charged(const Settlement& settlement, unsigned status) noexcept;
// Returns true if a gRPC call that ends with this status is charged. REQUIRES: charged_calls is not 0.
[[nodiscard]] bool is_call_charged(const Settlement& settlement, unsigned grpc_status) noexcept;

// The cost that a response reports.
struct ReportedCost {
  enum class State : std::uint8_t {
    Amount,      // `amount` is set
    Nothing,     // the response reports no amount
    Unreadable,  // not a number from 0 to kMaxCost, several differing amounts, or invalid JSON
  };
  State state = State::Nothing;
  limit::Cost amount = 0;
};

// Reads the amount in a header of the response. REQUIRES: `kind` is Header.
[[nodiscard]] ReportedCost reported_cost_in_head(const Settlement& settlement, const http::Fields& fields);
// Reads the amount in the body of the response. A term whose pointers are all absent or null adds nothing. If
// no term adds anything, the state is Nothing. REQUIRES: `kind` is Json, and the body is complete and not a
// stream.
[[nodiscard]] ReportedCost reported_cost_in_body(const Settlement& settlement, std::string_view body);

// Returns the cost of the octets that weir forwarded: whole units, rounded up, at most kMaxCost. `request`,
// `response`: the octets of each body. REQUIRES: `kind` is Bytes.
[[nodiscard]] limit::Cost cost_of_bytes(const Settlement& settlement, std::uint64_t request,
                                        std::uint64_t response) noexcept;

// Return the settlement in words. describe_charge() returns "charged on 401, 5xx, UNAUTHENTICATED".
// describe_cost() returns "header X-Tokens of the answer" or "json /usage/total_tokens of the answer".
// Alternatives are separated by "|". A sum is "json /in + 4 x /out of the answer". An estimate adds ", 1 an
// event, cut". A cost in bytes is "bytes of the request and the answer / 1024".
[[nodiscard]] std::string describe_charge(const Settlement& settlement);
[[nodiscard]] std::string describe_cost(const Settlement& settlement);

}  // namespace weir::policy
