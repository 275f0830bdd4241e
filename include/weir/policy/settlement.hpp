// How an answer settles what its request was charged: whether it is charged at all, by its status, and how
// much, by what it says in its head or its JSON body.
//
// Pure. What an upstream says wrongly is a value here: the reserve stands then.
#pragma once

#include "weir/base/result.hpp"
#include "weir/http/head.hpp"
#include "weir/limit/rate.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// From `first` to `last`, both included.
struct StatusRange {
  unsigned first = 0, last = 0;
  friend bool operator==(const StatusRange&, const StatusRange&) = default;
};

// "401", "5xx", "500-504". An error in words.
[[nodiscard]] base::Result<StatusRange> parse_statuses(std::string_view text);

struct Settlement {
  enum class Kind : std::uint8_t {
    None,    // the cost was known before
    Header,  // of the answer
    Json,    // the answer's body
  };
  std::vector<StatusRange> charged{};  // answers of these alone are charged; empty: all
  Kind kind = Kind::None;
  std::string name{};                 // of the header; of Json a pointer (RFC 6901)
  std::uint32_t scale = 0;            // as CostSource::scale
  std::uint64_t max_body = 64 << 10;  // of Json: of a longer body the reserve stands
};

[[nodiscard]] bool is_charged(const Settlement& settlement, unsigned status) noexcept;

// What an answer said.
struct Told {
  enum class State : std::uint8_t {
    Amount,      // `amount`
    Nothing,     // it does not say
    Unreadable,  // no amount from 0 to kMaxCost, several that differ, or a body that is no JSON
  };
  State state = State::Nothing;
  limit::Cost amount = 0;
};

// REQUIRES kind Header.
[[nodiscard]] Told told_in_head(const Settlement& settlement, const http::Fields& fields);
// Of the whole body. REQUIRES kind Json.
[[nodiscard]] Told told_in_body(const Settlement& settlement, std::string_view body);

// "charged on 401, 403, 5xx"; "header X-Tokens of the answer", "json /usage/total_tokens of the answer".
[[nodiscard]] std::string describe_charge(const Settlement& settlement);
[[nodiscard]] std::string describe_cost(const Settlement& settlement);

}  // namespace weir::policy
