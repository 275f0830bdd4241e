// What a line of the access log holds beside the usual, so that the traffic it tells of can be run again
// under other rules (the field "replay"; read by the room `replay`):
//
//   {"run":"5d1c03aa91e07b42","clock_us":-3,"asked_us":120,"turn":1,"api_key":"…","user":"alice","tier":"pro","load":0.25,
//    "rules":[{"rule":"login","asks":"9b1f0c4e","key":"…","cost":1,"says":"admitted","variant":2,"elastic":true}],
//    "amends":[{"rule":"login","does":"settle","at_us":512,"turn":3,"cost":0}]}
//
// `"first":true` stands in the first line that tells of a table that began empty: a log without it is not
// whole. Left out is what is absent, zero or false. A line's `time` is the machine's. Limits go by weir's own
// clock, which is `clock_us` ahead of it (below zero: behind); instants count from the sum. A turn
// (limit/turn.hpp) is what it has beyond the first one of its instant. API keys stand there as digests alone.
//
// Somebody may give back all of a key meanwhile. That is a line of its own, with nothing beside its time:
//
//   {"run":"5d1c03aa91e07b42","reset":{"rule":"login","asks":"9b1f0c4e","keys":[{"key":"…","turn":3}]}}
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/base/text_writer.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/concurrency.hpp"
#include "weir/limit/turn.hpp"
#include "weir/policy/rule.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::observe {

// What was done to a charge after it was made.
struct Amendment {
  enum class Kind : std::uint8_t {
    Refund,   // given back: the request reached no server
    Settle,   // to `cost`, which its answer told
    Release,  // of what is in flight: the exchange has ended
  };
  Kind kind = Kind::Refund;
  bool elastic = false;  // of the rule's elastic limiter, which counts apart
  limit::RuleIndex rule = 0;
  limit::Cost cost = 0;         // of Settle
  base::TimePoint at{};         // when
  limit::Turn turn = 0;         // 0: it was not the table's, or its overflow cell's
  base::TimePoint departure{};  // of Refund: the one that goes back
  limit::Ending ending{};       // of Release
};
inline constexpr std::string_view kAmendmentNames[] = {"refund", "settle", "release"};

// What one rule said.
struct AppliedRule {
  const policy::Rule* rule = nullptr;
  limit::Key key;
  limit::Cost cost = 1;
  std::string_view says;      // a word of kRuleOutcomeNames, or "won": a place in a queue from somebody else
  std::uint16_t variant = 0;  // policy::AppliedLimiter::variant
  bool elastic = false;
};

struct ReplayRecord {
  std::uint64_t run = 0;    // of the table that was charged: ends with the process, unless a snapshot goes on
  base::TimePoint start{};  // by weir's own clock, as all instants here
  base::Duration clock_ahead{0};  // of that clock, before the machine's
  base::TimePoint asked{};        // when the rules were; the epoch: they never were
  limit::Turn turn = 0;           // of the charge; 0: nothing was charged in the table
  std::optional<base::Digest128> api_key;
  std::string_view user, org, service, device, tier, country;
  bool unverified = false;     // nobody verified its token, so what its claims say is absent
  std::optional<double> load;  // where some rule looks at it
  std::string_view unmet;      // the rule that lacked what it asks for
  std::string_view closed;     // the rule whose store was away
  std::span<const AppliedRule> rules;
  std::span<const Amendment> amendments;
  std::span<const policy::Rule> all_rules;  // those that amendments are of
  bool cut = false;                         // there were more amendments than a line takes
  // What was decided or amended in memory from then on is not known to the process that has taken over.
  base::TimePoint lost_from = base::TimePoint::max();
  bool in_memory = true;  // some rule that was asked keeps its state there
  bool first = false;     // that is told of this table, which began empty
};

// A key that was given back, and when; it has one for each limiter of its rule.
struct ForgottenKey {
  limit::Key key;
  limit::Turn turn = 0;  // of an instant that is not the table's: the first one
};
struct ResetRecord {
  std::uint64_t run = 0;
  base::TimePoint at{};           // by weir's own clock
  base::Duration clock_ahead{0};  // of that clock, before the machine's
  std::string_view rule;
  std::uint32_t asks = 0;  // policy::Rule::asks
  std::span<const ForgottenKey> keys;
};

// What a log calls the table whose names are made under this key (policy::NamingKeys).
[[nodiscard]] std::uint64_t run_of(const base::SipKey& table) noexcept;

// The most that it takes, in octets.
[[nodiscard]] std::size_t most_of(const ReplayRecord& record) noexcept;
// `,"replay":{…}`
void write_replay(base::TextWriter& out, const ReplayRecord& record);
[[nodiscard]] std::size_t most_of(const ResetRecord& record) noexcept;
void write_replay(base::TextWriter& out, const ResetRecord& record);

}  // namespace weir::observe
