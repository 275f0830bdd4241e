// The field "replay" of the access log. It has the facts that `weir replay` needs to replay the traffic under
// other rules (src/replay/).
//
//   `{"run":"5d1c03aa91e07b42","clock_us":-3,"asked_us":120,"turn":1,"api_key":"…","user":"alice","tier":"pro",`
//   ` "load":0.25,`
//   ` "rules":[{"rule":"login","asks":"9b1f0c4e","key":"…","cost":1,"says":"admitted","variant":2,`
//   `           "elastic":true,"factor":35}],`
//   ` "amends":[{"rule":"login","does":"settle","at_us":512,"turn":3,"cost":0}]}`
//
// `"first":true` is in the first line about a key table that began empty. If no line has it, the log is
// incomplete. Absent, zero and false values are left out, and a `factor` (in percent) of 100 as well.
//
// A line's `time` is by the machine's clock. Limits use weir's own clock, which is `clock_us` ahead of the
// machine's clock (behind if negative). The rules were evaluated `asked_us` after `time`, and a charge
// was changed `at_us` after `time`, both by weir's clock. `turn` is the timestamp of the charge or change
// (limit/hybrid_timestamp.hpp), minus the first timestamp of its instant. `asks` is policy::Rule::asks, a
// digest of what the rule reads. API keys appear only as digests.
//
// A reset of a key has a separate line, which has no fields except the time and "replay":
//
//   {"run":"5d1c03aa91e07b42","reset":{"rule":"login","asks":"9b1f0c4e","keys":[{"key":"…","turn":3}]}}
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/base/text_writer.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/concurrency.hpp"
#include "weir/limit/hybrid_timestamp.hpp"
#include "weir/policy/rule.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::observe {

// A change to a charge after it was made.
struct Amendment {
  enum class Kind : std::uint8_t {
    Refund,   // refunded, because the request reached no server
    Settle,   // changed to `cost`, as the answer requires
    Release,  // the exchange ended, and the concurrency limit released the exchange's permits
  };
  Kind kind = Kind::Refund;
  bool elastic = false;  // true: changes the charge of the rule's elastic limiter, which has its own state
  limit::RuleIndex rule = 0;
  limit::Cost cost = 0;                  // for Settle: the actual cost
  base::TimePoint at{};                  // the time of the change
  limit::HybridTimestamp timestamp = 0;  // 0: the change was in an overflow cell, or outside the key table
  base::TimePoint departure{};           // for Refund: the departure that the refund cancelled
  limit::Ending ending{};                // for Release: how the exchange ended
};
inline constexpr std::string_view kAmendmentNames[] = {"refund", "settle", "release"};

// The decision of one rule about the request.
struct AppliedRule {
  const policy::Rule* rule = nullptr;
  limit::Key key;
  limit::Cost cost = 1;
  // A word from kRuleOutcomeNames. Or "won": the request took the queue place of another request.
  std::string_view outcome;
  std::uint16_t variant = 0;  // number of the variant whose limiter decided (policy::AppliedLimiter::variant)
  bool elastic = false;
  limit::Factor factor = limit::kWholeFactor;  // the share of the limit that the rule granted
};

struct ReplayRecord {
  // Identifies the key table that was charged. A table lives as long as the process, or longer if a snapshot
  // keeps it.
  std::uint64_t run = 0;
  base::TimePoint start{};               // by weir's own clock, like all instants here
  base::Duration clock_ahead{0};         // how far weir's clock was ahead of the machine's clock
  base::TimePoint evaluated_at{};        // when weir evaluated the rules; the epoch: never
  limit::HybridTimestamp timestamp = 0;  // timestamp of the charge; 0: nothing was charged in the key table
  std::optional<base::Digest128> api_key;
  std::string_view user, org, service, device, tier, country;
  bool unverified = false;     // true: the token was not verified, so its claims are absent
  std::optional<double> load;  // the load; present if any rule depends on it
  std::string_view unmet;      // name of the rule that refused because the request lacked a value
  std::string_view closed;     // name of the rule that refused because its store did not answer
  std::span<const AppliedRule> rules;
  std::span<const Amendment> amendments;
  std::span<const policy::Rule> all_rules;  // the rules to which RuleIndexes in `amendments` refer
  bool cut = false;  // true: some amendments are missing, because they did not fit in the line
  // When the handover of limits to the new process began, during an upgrade. The new process does not know
  // changes that this process makes to limits in memory at or after this instant.
  base::TimePoint lost_from = base::TimePoint::max();
  bool in_memory = true;  // true: some evaluated rule keeps its state in this process's memory
  bool first = false;     // true: this is the first record about the table, which began empty
};

// A reset key and the timestamp of the reset. A reset affects one key for each limiter of the rule.
struct ForgottenKey {
  limit::Key key;
  // The timestamp of the reset. If the key is not in the key table: limit::timestamp_at() of the time of the
  // reset.
  limit::HybridTimestamp timestamp = 0;
};
struct ResetRecord {
  std::uint64_t run = 0;
  base::TimePoint at{};           // time of the reset, by weir's own clock
  base::Duration clock_ahead{0};  // how far weir's clock was ahead of the machine's clock
  std::string_view rule;
  std::uint32_t asks = 0;  // policy::Rule::asks, a digest of what the rule reads
  std::span<const ForgottenKey> keys;
};

// Returns the number (ReplayRecord::run) that identifies a key table in logs. `table`: the secret key that
// names the table's clients (policy::NamingKeys).
[[nodiscard]] std::uint64_t run_of(const base::SipKey& table) noexcept;

// Returns an upper bound of the record's size, in octets.
[[nodiscard]] std::size_t most_of(const ReplayRecord& record) noexcept;
// Appends `,"replay":{…}`.
void write_replay(base::TextWriter& out, const ReplayRecord& record);
[[nodiscard]] std::size_t most_of(const ResetRecord& record) noexcept;
void write_replay(base::TextWriter& out, const ResetRecord& record);

}  // namespace weir::observe
