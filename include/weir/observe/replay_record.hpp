// The field "replay" of the access log, which lets `weir replay` run the traffic again under other rules. The
// room `replay` reads it.
//
//   `{"run":"5d1c03aa91e07b42","clock_us":-3,"asked_us":120,"turn":1,"api_key":"…","user":"alice","tier":"pro",`
//   ` "load":0.25,`
//   ` "rules":[{"rule":"login","asks":"9b1f0c4e","key":"…","cost":1,"says":"admitted","variant":2,`
//   `           "elastic":true}],`
//   ` "amends":[{"rule":"login","does":"settle","at_us":512,"turn":3,"cost":0}]}`
//
// `"first":true` is in the first line about a table that began empty; a log without that line is not whole.
// Absent, zero and false values are left out. A line's `time` is the machine's. Limits use weir's own clock,
// which is `clock_us` ahead of it (negative: behind); instants count from the sum. A turn
// (limit/hybrid_timestamp.hpp) is its distance from the first turn of its instant. API keys appear only as
// digests.
//
// A reset of a key has a line of its own, which has only the time beside it:
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
    Refund,   // refunded: the request reached no server
    Settle,   // changed to `cost`, according to the answer
    Release,  // of concurrency: the exchange has ended
  };
  Kind kind = Kind::Refund;
  bool elastic = false;  // concerns the rule's elastic limiter, which has its own state
  limit::RuleIndex rule = 0;
  limit::Cost cost = 0;                  // of Settle
  base::TimePoint at{};                  // when
  limit::HybridTimestamp timestamp = 0;  // 0: not in the key table, or in its overflow cell
  base::TimePoint departure{};           // of Refund: the departure given back
  limit::Ending ending{};                // of Release
};
inline constexpr std::string_view kAmendmentNames[] = {"refund", "settle", "release"};

// One rule's decision.
struct AppliedRule {
  const policy::Rule* rule = nullptr;
  limit::Key key;
  limit::Cost cost = 1;
  std::string_view says;      // a word of kRuleOutcomeNames, or "won": displaced another queued request
  std::uint16_t variant = 0;  // policy::AppliedLimiter::variant
  bool elastic = false;
};

struct ReplayRecord {
  std::uint64_t run = 0;          // the charged table: lives as long as the process, or longer by snapshots
  base::TimePoint start{};        // by weir's own clock, as all instants here
  base::Duration clock_ahead{0};  // how far weir's clock was ahead of the machine's
  base::TimePoint asked{};        // when the rules were evaluated; the epoch: never
  limit::HybridTimestamp timestamp = 0;  // of the charge; 0: nothing was charged in the table
  std::optional<base::Digest128> api_key;
  std::string_view user, org, service, device, tier, country;
  bool unverified = false;     // the token was not verified, so its claims are absent
  std::optional<double> load;  // present if some rule uses it
  std::string_view unmet;      // the rule that lacked something it needs
  std::string_view closed;     // the rule whose store was away
  std::span<const AppliedRule> rules;
  std::span<const Amendment> amendments;
  std::span<const policy::Rule> all_rules;  // the rules that amendments refer to
  bool cut = false;                         // there were more amendments than fit in a line
  // Decisions and amendments in memory from this instant on are unknown to the process that took over.
  base::TimePoint lost_from = base::TimePoint::max();
  bool in_memory = true;  // some evaluated rule keeps its state in memory
  bool first = false;     // the first record about this table, which began empty
};

// A reset key, and when. It has one key for each limiter of its rule.
struct ForgottenKey {
  limit::Key key;
  limit::HybridTimestamp timestamp = 0;  // the first turn of its instant if it is not the table's
};
struct ResetRecord {
  std::uint64_t run = 0;
  base::TimePoint at{};           // by weir's own clock
  base::Duration clock_ahead{0};  // how far weir's clock was ahead of the machine's
  std::string_view rule;
  std::uint32_t asks = 0;  // policy::Rule::asks
  std::span<const ForgottenKey> keys;
};

// Returns the name in logs of the table whose names are made under this key (policy::NamingKeys).
[[nodiscard]] std::uint64_t run_of(const base::SipKey& table) noexcept;

// Returns the upper bound of the record's size, in octets.
[[nodiscard]] std::size_t most_of(const ReplayRecord& record) noexcept;
// Appends `,"replay":{…}`.
void write_replay(base::TextWriter& out, const ReplayRecord& record);
[[nodiscard]] std::size_t most_of(const ResetRecord& record) noexcept;
void write_replay(base::TextWriter& out, const ResetRecord& record);

}  // namespace weir::observe
