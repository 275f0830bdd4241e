// A rule: for which requests, for whom apart, how much. Immutable once the configuration is read.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/shared_limiter.hpp"
#include "weir/policy/cost.hpp"
#include "weir/policy/match.hpp"
#include "weir/policy/settlement.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// New ones go to the end: the numbers are part of the names in Redis, on which weirs of two versions must
// agree.
enum class Attribute : std::uint8_t {
  Ip,
  ApiKey,
  User,
  Org,
  Tier,
  Service,
  Device,
  Route,
  Host,
  Method,
  Path,
  Header,  // named
  Query,   // named
  Cookie,  // named
  Country,
  Claim,  // named
  CertSubject,
  Upstream,
};

struct AttributeRef {
  Attribute kind = Attribute::Ip;
  std::string name;  // of a header (lower case), query parameter, cookie or claim (all with their case)
  friend bool operator==(const AttributeRef&, const AttributeRef&) = default;
};

// One part of a key: the first alternative that is present ("api_key|ip").
using KeyPart = std::vector<AttributeRef>;
// All parts together; no part at all is one key for everybody.
using KeyPattern = std::vector<KeyPart>;

// "ip", "api_key|ip", "header:X-Tenant". An error names the word and the nearest attribute.
[[nodiscard]] base::Result<KeyPart> parse_key_part(std::string_view text);
[[nodiscard]] std::string describe(const AttributeRef& attribute);
[[nodiscard]] std::string describe(const KeyPattern& pattern);
// Whether all clients count together, under values of the configuration's own: no part at all, or routes.
// Hosts, methods and paths are what a client says, so it can have as many to itself as it likes.
[[nodiscard]] bool names_nobody(const KeyPattern& pattern) noexcept;

inline constexpr std::uint64_t kNoBound = ~std::uint64_t{0};

enum class OnMissing : std::uint8_t { Skip, Ip, Reject };
enum class Store : std::uint8_t { Memory, Redis };
enum class OnStoreFailure : std::uint8_t { Local, Open, Closed };
// Until when a request has its place among those that are under way.
enum class Hold : std::uint8_t {
  Client,  // until its client has the answer, or has left
  Answer,  // until its server has answered, though the client has left
};
enum class Mode : std::uint8_t { Enforce, Shadow };

// A higher limit for while the system has room. It counts apart, and both count every request, so that the
// rule's own limit finds out at once what it would have when room runs out.
struct Elastic {
  limit::SharedLimiter limiter;
  std::optional<limit::SharedLimiter> local_share{};  // as Rule::local_share
  double while_load_below = 0;                        // of Request::load
};

// The same rule with other numbers, for a tier or for what an override matches. Counts apart from the rule
// itself. What is not said of a member is said at the rule's.
struct Variant {
  std::string tier;  // of a tier's variant; empty for an override
  Match match{};     // of an override
  limit::SharedLimiter limiter;
  std::optional<limit::SharedLimiter> local_share{};
  std::optional<limit::SharedLimiter> soft{};
  std::optional<limit::SharedLimiter> soft_share{};
  std::optional<Elastic> elastic{};
};

// How many messages a client may send over WebSockets: of the key that the rule counts requests by, and apart
// from them.
struct Messages {
  limit::SharedLimiter limiter;
  bool closes = false;  // one too many ends its connection; else it waits, and those behind it
};

// How many units of a key a weir may take from Redis in advance. With neither: none.
struct Lease {
  std::uint32_t percent = 0;  // of the quota
  limit::Cost units = 0;
};
// The same in units of a limiter: at most a quarter of its quota.
[[nodiscard]] limit::Cost units_of(const Lease& lease, const limit::Limiter& limiter) noexcept;

// `name` and `limiter` must be given; the rest has defaults.
struct Rule {
  std::string name;            // unique, printable ASCII without quotes
  limit::RuleIndex index = 0;  // the label of its counters: one for each name, as long as weir runs
  limit::RuleIndex cells = 0;  // under which the table keeps its keys: another one with other numbers
  Match match{};
  KeyPattern key{};
  OnMissing on_missing = OnMissing::Skip;
  limit::SharedLimiter limiter;
  // What this weir enforces by itself while the store is away: the limit divided by `replicas`. Absent unless
  // store is Redis and on_store_failure is Local.
  std::optional<limit::SharedLimiter> local_share{};
  // With a soft limit: what is enforced in place of `limiter` and of `local_share`, a margin wider than the
  // limit that clients are told of.
  std::optional<limit::SharedLimiter> soft{};
  std::optional<limit::SharedLimiter> soft_share{};
  std::optional<Elastic> elastic{};
  std::vector<Variant> overrides{};  // first match wins, before tiers
  std::vector<Variant> tiers{};
  limit::Cost cost = 1;  // or, where cost_from names a place, of a request that says nothing there
  CostSource cost_from{};
  // Bytes of a body that its conditions, its overrides' and its cost read; 0: they ask for none.
  std::uint64_t max_body = 0;
  std::uint64_t queue_per_client = kNoBound;  // of a queue: how many of its places one client may take
  Store store = Store::Memory;
  OnStoreFailure on_store_failure = OnStoreFailure::Local;
  std::optional<Lease> lease{};
  Hold hold = Hold::Client;  // of a rule that counts requests under way
  Mode mode = Mode::Enforce;
  unsigned refusal_status = 429;
  std::optional<std::string> refusal_body{};
  // The answer has a say in what is charged: until then `cost` is what is held, or reserved.
  std::optional<Settlement> settlement{};
  std::optional<Messages> messages{};
  // digest_of_asks() of it: what a log says by it holds as long as this stays the same.
  std::uint32_t asks = 0;
  // marks_of() it, for a request not to work them out; names are the same without them.
  std::vector<base::Digest128> marks{};
};

// A digest of all that a rule asks of a request and of its answer: for which requests, for whom apart, at
// what cost; not of its numbers.
[[nodiscard]] std::uint32_t digest_of_asks(const Rule& rule);

// By ledger, what sets the names of its clients there apart from their names elsewhere (see name_key.cpp).
[[nodiscard]] std::vector<base::Digest128> marks_of(const Rule& rule);

// The name that a client's messages are counted under, beside that of its requests.
[[nodiscard]] constexpr limit::Key message_key(const limit::Key& of_requests) noexcept {
  return {of_requests.lo ^ 0x6d657373'61676573, of_requests.hi};
}

// Overrides and tiers of a rule together, for their numbers are part of keys, and as wide as
// AppliedLimiter's.
inline constexpr std::size_t kMostVariants = 65'534;

// By which of a rule's limiters a request that met it is asked to pay.
struct AppliedLimiter {
  const limit::Limiter* limiter;  // that is enforced
  const limit::Limiter* told;  // that clients are told of: the same, or with a soft limit one with less room
  std::uint16_t variant = 0;   // 0 the rule itself, then overrides, then tiers: part of the key
  bool elastic = false;        // the elastic limiter of the variant, which counts under a name of its own
  bool paired = false;         // the variant has two limiters: the other one is to count as well
  bool counted = false;        // this is that other one: charged, and it decides nothing
};
// A variant and its elastic limiter are an even ledger and the odd one after it.
[[nodiscard]] constexpr limit::Ledger ledger_of(std::uint16_t variant, bool elastic) noexcept {
  return variant * limit::Ledger{2} + (elastic ? 1 : 0);
}
// That of the messages comes after all variants.
[[nodiscard]] inline limit::Ledger message_ledger(const Rule& rule) noexcept {
  return ledger_of(static_cast<std::uint16_t>(1 + rule.overrides.size() + rule.tiers.size()), false);
}
[[nodiscard]] AppliedLimiter applied_limiter(const Rule& rule, const Request& request);

// The one of a variant that the rule has, whatever the request.
[[nodiscard]] AppliedLimiter limiter_of(const Rule& rule, std::uint16_t variant, bool elastic);

// The other one of a pair. REQUIRES applied.paired.
[[nodiscard]] AppliedLimiter counted_limiter(const Rule& rule, const AppliedLimiter& applied);
// The share of it that is enforced here while the store is away: the same where none was asked for.
[[nodiscard]] AppliedLimiter local_limiter(const Rule& rule, const AppliedLimiter& applied);

}  // namespace weir::policy
