// What a request says it costs: in a header, in its query, in its JSON body.
//
// Pure. A number that a client wrote wrongly is the client's fault and a value here, never an exception.
#pragma once

#include "weir/http/head.hpp"
#include "weir/limit/rate.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::policy {

// How deep arrays and objects of a body that is read may lie in each other: each takes a part of the stack.
inline constexpr std::size_t kDeepestJson = 512;

struct CostSource {
  enum class Kind : std::uint8_t { None, Header, Query, Json };
  Kind kind = Kind::None;
  std::string name;         // of the header or query parameter; of Json a pointer (RFC 6901)
  std::uint32_t scale = 0;  // 0: whole numbers; else all numbers, times so much, rounded up
};

// Reads a cost as JSON writes numbers. "5", "5.0" and "5e0" are 5; with a scale of 100 "19.99" is 1999, and
// "0.001" is 1. The result is exact, whatever the digits. Returns nullopt for any other text, for one that is
// no whole number where `scale` is 0, and for what comes to less than 1 or more than kMaxCost.
[[nodiscard]] std::optional<limit::Cost> parse_cost(std::string_view text, std::uint32_t scale);

// What the request's head says; `otherwise` where it says nothing. nullopt where it is faulty: no number that
// parse_cost takes, or several that differ. REQUIRES a source in the head.
[[nodiscard]] std::optional<limit::Cost> cost_in_head(const CostSource& source, const http::RequestHead& head,
                                                      limit::Cost otherwise);

// What a whole JSON body says under the pointer, as a number or as a string with one; likewise. An empty body
// says nothing; one that is no JSON is faulty, and one that says it twice.
[[nodiscard]] std::optional<limit::Cost> cost_in_body(const CostSource& source, std::string_view body,
                                                      limit::Cost otherwise);

// Whether it is faulty because it is nested deeper than kDeepestJson, wherever.
[[nodiscard]] bool is_too_deep(const CostSource& source, std::string_view body);

// "header X-Cost", "query cost", "json /amount"; "request" of None.
[[nodiscard]] std::string describe(const CostSource& source);

}  // namespace weir::policy
