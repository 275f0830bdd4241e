// The messages of Envoy's rate limit service, envoy.service.ratelimit.v3.RateLimitService. Field numbers are
// those of Envoy's public interface (src/ask/proto). Pure.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/rate.hpp"
#include "weir/policy/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::ask {

// The largest number of descriptors in one call. Each charge has a mask of 32 bits, one for each descriptor.
inline constexpr std::size_t kMostDescriptors = 32;

// A RateLimitRequest. The views refer to the message.
struct RlsCall {
  std::string_view domain;
  std::vector<policy::Descriptor> descriptors;
  // the cost for each descriptor without a cost of its own; nullopt: the cost that each rule has
  std::optional<limit::Cost> hits{};
};

// Reads a RateLimitRequest. Skips fields that weir does not know, and the limit that a descriptor states,
// because the operator's rules decide. A descriptor with a hits_addend of 0 gets the cost 0: it is a check.
// The error says what is wrong with the message.
[[nodiscard]] base::Result<RlsCall> read_rls_call(std::string_view message);

// The limit that a DescriptorStatus shows.
struct RlsLimit {
  std::string_view rule;
  std::uint64_t units = 0;   // units in each `period`
  base::Duration period{0};  // zero: the limit has no period, such as a concurrency limit
  std::uint64_t remaining = 0;
  base::Duration reset_after{0};
};

struct RlsStatus {
  bool over_limit = false;
  std::optional<RlsLimit> limit{};  // absent: no rule applies to the descriptor
};

struct RlsAnswer {
  bool over_limit = false;
  std::span<const RlsStatus> statuses{};
  // Header lines for the answer that Envoy gives its client, each with its CRLF.
  std::string_view fields{};
  std::string_view body{};  // the body of a refusal; empty: Envoy's own
};

// Appends a RateLimitResponse. Numbers above 2^32 - 1 are written as 2^32 - 1.
void append_rls_answer(std::string& out, const RlsAnswer& answer);

}  // namespace weir::ask
