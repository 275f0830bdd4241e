// The place of a request in a distributed trace (W3C Trace Context). Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::observe {

// Which requests have a span that weir exports.
struct Sampling {
  // How many of a million requests are sampled, if the caller's flag does not decide.
  std::uint32_t per_million = 10'000;
  bool parent = true;    // true: the `sampled` flag of a trusted peer decides, if the peer sent one
  bool refusals = true;  // true: every request that a rule refused is exported, too
};

inline constexpr std::uint32_t kMillion = 1'000'000;

struct TraceContext {
  std::array<char, 32> trace{};   // the trace-id: lower-case hex digits
  std::array<char, 16> span{};    // the id of weir's own span
  std::array<char, 16> parent{};  // the id of the caller's span; only if `has_parent`
  bool has_parent = false;
  bool sampled = false;  // the flag that weir sends to the server

  [[nodiscard]] std::string_view trace_id() const noexcept { return {trace.data(), trace.size()}; }
};

// Random bits for one request.
using TraceChance = std::array<std::uint32_t, 7>;

// Returns the place of a request. `traceparent`: the field that a trusted peer sent. If it is valid, the
// request continues that trace. If it is empty or invalid, the request begins a trace.
[[nodiscard]] TraceContext join_trace(std::string_view traceparent, const Sampling& sampling,
                                      const TraceChance& chance) noexcept;

// Appends the line "traceparent: …" for the server. The line names weir's span as the parent.
void append_traceparent(std::string& out, const TraceContext& context);

}  // namespace weir::observe
