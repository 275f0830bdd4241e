// Reads the cost of a request from a header, the query or the JSON body.
//
// Pure. An invalid number is the client's fault. So a return value reports it, never an exception.
#pragma once

#include "weir/http/head.hpp"
#include "weir/limit/rate.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// The maximum depth of nested arrays and objects in a JSON body. Each level uses some of the stack.
inline constexpr std::size_t kDeepestJson = 512;

// One term of a weighted sum: a number in a JSON body, and its weight.
struct CostTerm {
  static constexpr std::uint64_t kOne = 1'000'000;  // the weight 1

  std::vector<std::string> pointers{};  // JSON pointers (RFC 6901); the first pointer with a value counts
  std::uint64_t weight = kOne;          // in millionths, above 0
  friend bool operator==(const CostTerm&, const CostTerm&) = default;
};

struct CostSource {
  enum class Kind : std::uint8_t {
    None,
    Header,
    Query,
    Json,
    Reserve,  // the JSON body states the most that the request may cost; the response states its actual cost
    // the Content-Length states the most that the request may cost; the actual cost is the octets that weir
    // forwards
    Length,
  };
  Kind kind = Kind::None;
  std::string name;  // name of the header or query parameter; for Json: a JSON pointer (RFC 6901)
  // 0: only whole numbers are valid. Otherwise a number is multiplied by `scale` and rounded up.
  std::uint32_t scale = 0;
  std::vector<CostTerm> terms{};       // Reserve: the sum of these numbers is reserved, rounded up
  limit::Cost most = limit::kMaxCost;  // Reserve: the largest cost that is reserved
  std::uint64_t per = 1;               // Length: octets of one unit, above 0
};

// Returns true if the cost is read from the request's body.
[[nodiscard]] constexpr bool reads_body(const CostSource& source) noexcept {
  return source.kind == CostSource::Kind::Json || source.kind == CostSource::Kind::Reserve;
}

// Returns the number of units for `octets`, rounded up, at most kMaxCost. `per`: octets of one unit, above 0.
[[nodiscard]] constexpr limit::Cost units_of_bytes(std::uint64_t octets, std::uint64_t per) noexcept {
  const auto units = octets / per + (octets % per != 0 ? 1 : 0);
  return units < limit::kMaxCost ? static_cast<limit::Cost>(units) : limit::kMaxCost;
}

// Parses a cost in JSON number syntax. "5", "5.0" and "5e0" are 5. With a scale of 100, "19.99" is 1999 and
// "0.001" is 1. The result is exact. Returns nullopt for any other text, for a fraction if `scale` is 0, and
// for a cost below 1 or above kMaxCost.
[[nodiscard]] std::optional<limit::Cost> parse_cost(std::string_view text, std::uint32_t scale);

// Returns the cost that the request's head states, or `otherwise` if the head states no cost. Returns nullopt
// if parse_cost() rejects a value, or if the head has several different values. REQUIRES: the source is a
// header, a query parameter or the Content-Length.
[[nodiscard]] std::optional<limit::Cost> cost_in_head(const CostSource& source, const http::RequestHead& head,
                                                      limit::Cost otherwise);

// Returns the cost under the pointer in a JSON body: a number, or a string with a number. Returns `otherwise`
// if the body is empty or has no value under the pointer. Returns nullopt for invalid JSON, an invalid cost,
// or a member that occurs twice. For Kind::Reserve, also returns `otherwise` if the value is not a whole
// number above 0, such as null or -1 for "no bound". REQUIRES: reads_body(source).
[[nodiscard]] std::optional<limit::Cost> cost_in_body(const CostSource& source, std::string_view body,
                                                      limit::Cost otherwise);

// Why weir cannot find a cost in a JSON body. A cost that is found but rejected by parse_cost() is no
// JsonFault.
enum class JsonFault : std::uint8_t {
  None,
  ByteOrderMark,  // the body begins with a byte order mark (RFC 8259 §8.1)
  Incomplete,     // the body ends before its JSON value does
  Trailing,       // the body has more text after its JSON value
  Malformed,      // any other text that is not JSON in UTF-8
  Repeated,       // the member with the cost occurs twice, or an object that contains this member does
  TooDeep,        // nested deeper than kDeepestJson
};
[[nodiscard]] JsonFault json_fault(const CostSource& source, std::string_view body);
// Returns words that complete a sentence which begins "the request body". REQUIRES: the fault is not None.
[[nodiscard]] std::string_view describe(JsonFault fault) noexcept;

// Returns the source in words: "header X-Cost", "query cost", "json /amount" or "json /max_tokens up to
// 32000"; "Content-Length / 1024"; "request" for Kind::None.
[[nodiscard]] std::string describe(const CostSource& source);

}  // namespace weir::policy
