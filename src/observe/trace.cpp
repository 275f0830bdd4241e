#include "weir/observe/trace.hpp"

#include "weir/observe/access_record.hpp"

#include <algorithm>
#include <span>

namespace weir::observe {

namespace {

constexpr std::size_t kParentAt = 36;  // where the parent-id begins in a traceparent
constexpr std::size_t kFlagAt = 54;    // the digit of the flags that holds `sampled`

// Fills `digits` with hex digits of the random numbers, eight digits a number.
void write_id(std::span<char> digits, std::span<const std::uint32_t> chance) noexcept {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t i = 0; i < digits.size(); ++i) digits[i] = kDigits[chance[i / 8] >> (i % 8 * 4) & 15];
}

// Returns the flag `sampled`, the lowest bit of the last digit.
bool is_sampled(char digit) noexcept {
  const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
  return (value & 1) != 0;
}

}  // namespace

TraceContext join_trace(std::string_view traceparent, const Sampling& sampling,
                        const TraceChance& chance) noexcept {
  TraceContext context;
  const std::span random(chance);
  write_id(context.span, random.first<2>());
  const auto drawn = std::uint64_t{random.back()} * kMillion >> 32;
  context.sampled = drawn < sampling.per_million;
  const auto trace = trace_id_of(traceparent);
  if (trace.empty()) {
    write_id(context.trace, random.subspan<2, 4>());
    return context;
  }
  std::copy(trace.begin(), trace.end(), context.trace.begin());
  std::copy_n(traceparent.begin() + kParentAt, context.parent.size(), context.parent.begin());
  context.has_parent = true;
  if (sampling.parent) context.sampled = is_sampled(traceparent[kFlagAt]);
  return context;
}

void append_traceparent(std::string& out, const TraceContext& context) {
  out.append("traceparent: 00-").append(context.trace_id()).append("-");
  out.append(context.span.data(), context.span.size()).append(context.sampled ? "-01\r\n" : "-00\r\n");
}

}  // namespace weir::observe
