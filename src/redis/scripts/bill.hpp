// Converts bills (the charges of one request each) to the arguments of charge.lua and refund.lua, and replies
// to outcomes. Pure. The comments at the top of the scripts explain the numbers.
#pragma once

#include "redis/cluster/cluster_slots.hpp"
#include "redis/connection/resp.hpp"
#include "redis/scripts/charge_numbers.hpp"

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

// The sources of the scripts, which the build embeds.
[[nodiscard]] std::string_view charge_script() noexcept;
[[nodiscard]] std::string_view refund_script() noexcept;

// The parts of a key's name in Redis beside the key's digest.
struct Naming {
  std::string_view prefix;
  bool tagged = false;  // true in a cluster: a name has a hash tag, which determines the key's cluster slot
};

// Returns `prefix`, a colon, and the key's digest as 22 characters of base64url (RFC 4648 §5).
[[nodiscard]] std::string key_name(std::string_view prefix, const limit::Key& key);

// Returns the hash tag of all keys with the slot hash `hash`. In a cluster, a key's name contains the tag, in
// braces, before the digest. The tag determines the key's slot.
[[nodiscard]] std::array<char, 3> tag_of(limit::SlotHash hash) noexcept;
[[nodiscard]] Slot slot_of(limit::SlotHash hash) noexcept;

// The number of one call of a script. The script's reply contains the number. The number is below 2^53 and
// unique among the worker's calls.
using CallNumber = std::uint64_t;
// Returns true if `reply` is the reply to the call with this number, and is not an error.
[[nodiscard]] bool is_answer_to(CallNumber number, const Reply& reply) noexcept;
// Reads a reply of refund.lua. Returns how many free slots (time intervals) were dropped, because a bucket's
// list of free slots was full.
[[nodiscard]] std::uint64_t gaps_lost(const Reply& reply) noexcept;

// The charges of one bill.
using Lines = std::span<const limit::Charge>;

// A bill to send to charge.lua: its charges, and the ID of the permits that it may take.
struct BillRequest {
  Lines lines;
  PermitId hold{};
  bool peeks = false;  // true: the script charges nothing and returns the verdict "refused"
};

// Returns how many lines the script gets for a bill: one for each charge, and one more for each charge with a
// penalty. A penalty's line follows the line of its charge.
[[nodiscard]] std::size_t script_lines(Lines bill) noexcept;

// The most bills and lines of one call of charge.lua. Bills that share a call save Redis the cost of
// commands. Beyond 16 bills the saving is small, and Redis serves no other client while a script runs. No
// bill joins a call that would then have more than kMostLines lines. At about 5 µs a line, 64 lines take a
// third of a millisecond.
inline constexpr std::size_t kMostBills = 16;
inline constexpr std::size_t kMostLines = 64;

// Appends one EVALSHA command of charge.lua to `out`. `sha`: the script's SHA-1. The script decides the bills
// in order. `around`: the approximate time of Redis's clock when the script will run. REQUIRES: 1 ≤
// bills.size() ≤ kMostBills; each bill has its own permit ID.
void append_charge(std::string& out, std::string_view sha, const Naming& naming,
                   std::span<const BillRequest> bills, base::TimePoint around, CallNumber number);

// The most lines of one call of refund.lua. Redis needs less than a millisecond for so many.
inline constexpr std::size_t kMostRefunds = 256;

// Appends one EVALSHA command of refund.lua to `out`. REQUIRES: 1 ≤ refunds.size() ≤ kMostRefunds.
void append_refund(std::string& out, std::string_view sha, const Naming& naming,
                   std::span<const Refund> refunds, CallNumber number);

// Appends one EVALSHA command of refund.lua that resets the charge's key. After the reset, the key has the
// state of a new key and no penalty. Redis ignores later refunds and settlements of charges that were made
// before the reset.
void append_reset(std::string& out, std::string_view sha, const Naming& naming, const limit::Charge& charge,
                  CallNumber number);

enum class ReplyReading : std::uint8_t {
  Answer,  // every outcome and `server_now` are set
  // Nothing was charged, because Redis's time, `server_now`, is in none of the calendar windows that weir
  // sent.
  OtherTime,
  Nonsense,  // the reply cannot come from charge.lua, or its decision contradicts the limiters
};

// The position of a bill in a call of charge.lua: bill number `bill`, counted from 0, of `bills` bills.
// `first_line`: the number of script lines before this bill. `lines`: the number of script lines of all
// bills.
struct BillPosition {
  std::size_t bill, bills;
  std::size_t first_line, lines;
};

// Reads the outcomes of one bill (the charges of one request). `peeks`: true if the bill was sent with
// BillRequest::peeks.
[[nodiscard]] ReplyReading read_outcomes(const Reply& reply, const BillPosition& position, Lines bill,
                                         std::span<limit::Outcome> outcomes, base::TimePoint& server_now,
                                         bool peeks = false);
// Reads the outcomes of a bill (the charges of one request) from the reply to a call with this bill alone.
[[nodiscard]] inline ReplyReading read_outcomes(const Reply& reply, Lines bill,
                                                std::span<limit::Outcome> outcomes,
                                                base::TimePoint& server_now) {
  return read_outcomes(reply, {0, 1, 0, script_lines(bill)}, bill, outcomes, server_now);
}

// Returns the numbers for the script lines of a refused bill, kAnswerNumbers for each line. Returns an empty
// span if the bill was charged.
[[nodiscard]] std::span<const std::int64_t> answers_of_refused(const Reply& reply,
                                                               const BillPosition& position,
                                                               Lines bill) noexcept;

}  // namespace weir::redis
