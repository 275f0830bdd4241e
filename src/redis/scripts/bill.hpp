// A bill on its way to Redis and back: the arguments of charge.lua and refund.lua, and what a reply says of
// each line. Pure. The scripts' own heads say what each number means.
#pragma once

#include "redis/cluster/cluster_slots.hpp"
#include "redis/connection/resp.hpp"
#include "redis/scripts/line.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/place.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::redis {

// The sources of the scripts, embedded at build.
[[nodiscard]] std::string_view charge_script() noexcept;
[[nodiscard]] std::string_view refund_script() noexcept;

// How keys are called in Redis.
struct Naming {
  std::string_view prefix;
  bool tagged = false;  // for a cluster: with the tag of the key's place, which says in which slot it is
};

// "prefix:" and the digest in 22 letters of base64url (RFC 4648 §5), in the order of its bytes.
[[nodiscard]] std::string key_name(std::string_view prefix, const limit::Key& key);

// What stands in braces before the letters of a tagged key, which says in which slot of a cluster it is.
[[nodiscard]] std::array<char, 3> tag_of(limit::Place place) noexcept;
[[nodiscard]] Slot slot_of(limit::Place place) noexcept;

// Of a call of either script: it comes back with the answer. Below 2^53; no other call of the worker has it.
using CallNumber = std::uint64_t;
// Whether it is the answer to that call, and no error.
[[nodiscard]] bool is_answer_to(CallNumber number, const Reply& reply) noexcept;
// Of an answer of refund.lua's: how many gaps of buckets there was no room for.
[[nodiscard]] std::uint64_t gaps_lost(const Reply& reply) noexcept;

// The lines of one bill.
using Lines = std::span<const limit::Charge>;

// A bill to be charged: its lines, and the permits that it may take.
struct Demand {
  Lines lines;
  Hold hold{};
  bool looks = false;  // nothing is charged, and it is told of as refused
};

// So many bills may share a call of charge.lua: each further one saves Redis the cost of a command (beyond 16
// hardly anything), but a script keeps everybody else waiting. Beyond so many lines it takes no second bill;
// at some 5 us a line that is a third of a millisecond.
inline constexpr std::size_t kMostBills = 16;
inline constexpr std::size_t kMostLines = 64;

// One EVALSHA of charge.lua, whose SHA-1 is `sha`, for bills that are decided one after the other. `around`:
// about when it will be there, by Redis's clock. REQUIRES 1 ≤ bills.size() ≤ kMostBills, and permits of their
// own for each.
void append_charge(std::string& out, std::string_view sha, const Naming& naming,
                   std::span<const Demand> bills, base::TimePoint around, CallNumber number);

// So many lines give back by one call: a script of so many takes Redis less than a millisecond.
inline constexpr std::size_t kMostRefunds = 256;

// One EVALSHA of refund.lua. REQUIRES 1 ≤ refunds.size() ≤ kMostRefunds.
void append_refund(std::string& out, std::string_view sha, const Naming& naming,
                   std::span<const Refund> refunds, CallNumber number);

// The same for one key that is reset: it is as if nobody had ever asked for it, and what was charged until
// then is neither given back nor settled any more.
void append_reset(std::string& out, std::string_view sha, const Naming& naming, const limit::Key& key,
                  CallNumber number);

enum class Reading : std::uint8_t {
  Answer,     // every outcome is set, and `server_now`
  OtherTime,  // nothing was charged: Redis's time, `server_now`, is none that the bill was made around
  Nonsense,   // not a reply of charge.lua, or one that decided otherwise than the limiters do
};

// Where a bill stands in a call: it is the `bill`th of `bills`, and so many of the call's `lines` come
// before.
struct BillPlace {
  std::size_t bill, bills;
  std::size_t first_line, lines;
};

// `looks`: as its demand's.
[[nodiscard]] Reading read_outcomes(const Reply& reply, const BillPlace& place, Lines bill,
                                    std::span<limit::Outcome> outcomes, base::TimePoint& server_now,
                                    bool looks = false);
// Of a call of one bill.
[[nodiscard]] inline Reading read_outcomes(const Reply& reply, Lines bill, std::span<limit::Outcome> outcomes,
                                           base::TimePoint& server_now) {
  return read_outcomes(reply, {0, 1, 0, bill.size()}, bill, outcomes, server_now);
}

// What an Answer says of a bill's lines, kAnswerNumbers each, if it was refused; else nothing.
[[nodiscard]] std::span<const std::int64_t> answers_of_refused(const Reply& reply, const BillPlace& place,
                                                               std::size_t lines) noexcept;

}  // namespace weir::redis
