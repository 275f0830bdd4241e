// Converts bills to the arguments of charge.lua and refund.lua, and replies to outcomes. Pure. The heads of
// the scripts say what each number means.
#pragma once

#include "redis/cluster/cluster_slots.hpp"
#include "redis/connection/resp.hpp"
#include "redis/scripts/line_numbers.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/slot_hash.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::redis {

// The sources of the scripts, embedded by the build.
[[nodiscard]] std::string_view charge_script() noexcept;
[[nodiscard]] std::string_view refund_script() noexcept;

// How names of keys in Redis are made.
struct Naming {
  std::string_view prefix;
  bool tagged = false;  // for a cluster: with a tag that determines the key's slot
};

// Returns "prefix:" and the digest as 22 letters of base64url (RFC 4648 §5), in the order of its bytes.
[[nodiscard]] std::string key_name(std::string_view prefix, const limit::Key& key);

// Returns the hash tag of a tagged key, which determines its slot. In the name it stands in braces before the
// letters.
[[nodiscard]] std::array<char, 3> tag_of(limit::SlotHash place) noexcept;
[[nodiscard]] Slot slot_of(limit::SlotHash place) noexcept;

// The number of a call of either script, which the reply returns. Below 2^53 and unique for the worker.
using CallNumber = std::uint64_t;
// Returns true if `reply` is no error and answers that call.
[[nodiscard]] bool is_answer_to(CallNumber number, const Reply& reply) noexcept;
// Returns how many gaps of buckets found no room, from a reply of refund.lua.
[[nodiscard]] std::uint64_t gaps_lost(const Reply& reply) noexcept;

// The lines of one bill.
using Lines = std::span<const limit::Charge>;

// A bill to charge: its lines, and the permits that it may take.
struct BillRequest {
  Lines lines;
  PermitId hold{};
  bool looks = false;  // nothing is charged, and the verdict is "refused"
};

// Bounds of a call of charge.lua. Each further bill saves Redis the cost of a command, but beyond 16 the
// saving is small, and a script keeps all other clients waiting. A call with kMostLines lines takes no second
// bill. At about 5 µs a line, that is a third of a millisecond.
inline constexpr std::size_t kMostBills = 16;
inline constexpr std::size_t kMostLines = 64;

// Appends one EVALSHA of charge.lua, whose SHA-1 is `sha`. The script decides the bills in order. `around`:
// the approximate time of arrival, by Redis's clock. REQUIRES 1 ≤ bills.size() ≤ kMostBills, and different
// permits for each bill.
void append_charge(std::string& out, std::string_view sha, const Naming& naming,
                   std::span<const BillRequest> bills, base::TimePoint around, CallNumber number);

// The most lines of one call of refund.lua, which take Redis less than a millisecond.
inline constexpr std::size_t kMostRefunds = 256;

// Appends one EVALSHA of refund.lua. REQUIRES 1 ≤ refunds.size() ≤ kMostRefunds.
void append_refund(std::string& out, std::string_view sha, const Naming& naming,
                   std::span<const Refund> refunds, CallNumber number);

// Appends one EVALSHA of refund.lua that resets a key: its state becomes that of a new key. Charges from
// before the reset are neither refunded nor settled later.
void append_reset(std::string& out, std::string_view sha, const Naming& naming, const limit::Key& key,
                  CallNumber number);

enum class ReplyReading : std::uint8_t {
  Answer,     // every outcome is set, and `server_now`
  OtherTime,  // nothing was charged: Redis's time, `server_now`, is in none of the bill's windows
  Nonsense,   // not a reply of charge.lua, or one whose decision differs from the limiters'
};

// The position of a bill in a call: bill number `bill` of `bills`. `first_line` of the call's `lines` precede
// it.
struct BillPosition {
  std::size_t bill, bills;
  std::size_t first_line, lines;
};

// `looks`: as in the bill's demand.
[[nodiscard]] ReplyReading read_outcomes(const Reply& reply, const BillPosition& place, Lines bill,
                                         std::span<limit::Outcome> outcomes, base::TimePoint& server_now,
                                         bool looks = false);
// For a call of one bill.
[[nodiscard]] inline ReplyReading read_outcomes(const Reply& reply, Lines bill,
                                                std::span<limit::Outcome> outcomes,
                                                base::TimePoint& server_now) {
  return read_outcomes(reply, {0, 1, 0, bill.size()}, bill, outcomes, server_now);
}

// Returns the answers to a refused bill's lines, kAnswerNumbers each. Empty if the bill was not refused.
[[nodiscard]] std::span<const std::int64_t> answers_of_refused(const Reply& reply, const BillPosition& place,
                                                               std::size_t lines) noexcept;

}  // namespace weir::redis
