// A rule: which requests it limits, how it tells clients apart, and its limits. Immutable once read.
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

// Add new attributes at the end: the numbers are part of names in Redis, which must be equal in all versions
// of weir.
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
  std::string name;  // header (lower case), query parameter, cookie or claim (all case-sensitive)
  friend bool operator==(const AttributeRef&, const AttributeRef&) = default;
};

// One part of a key: the first alternative that is present counts ("api_key|ip").
using KeyPart = std::vector<AttributeRef>;
// All parts of a key. Without parts there is one key for all clients.
using KeyPattern = std::vector<KeyPart>;

// Parses "ip", "api_key|ip" or "header:X-Tenant". The error names the unknown word and the nearest attribute.
[[nodiscard]] base::Result<KeyPart> parse_key_part(std::string_view text);
[[nodiscard]] std::string describe(const AttributeRef& attribute);
[[nodiscard]] std::string describe(const KeyPattern& pattern);
// Returns true if all clients count together: the key has no part, or only routes and upstreams. Hosts,
// methods and paths are chosen by the client, so a client could have any number of such keys.
[[nodiscard]] bool names_nobody(const KeyPattern& pattern) noexcept;

inline constexpr std::uint64_t kNoBound = ~std::uint64_t{0};

enum class OnMissing : std::uint8_t { Skip, Ip, Reject };
enum class Store : std::uint8_t { Memory, Redis };
enum class OnStoreFailure : std::uint8_t { Local, Open, Closed };
// When a concurrency permit is returned.
enum class Hold : std::uint8_t {
  Client,  // when the client has the response, or has left
  Answer,  // when the server has responded, even if the client has left
};
enum class Mode : std::uint8_t { Enforce, Shadow };

// A higher limit while the system has room. It counts separately, and both limits count every request. So the
// rule's own limit is correct at once when room runs out.
struct Elastic {
  limit::SharedLimiter limiter;
  std::optional<limit::SharedLimiter> local_share{};  // like Rule::local_share
  double while_load_below = 0;                        // compared with Request::load
};

// Other numbers of the rule, for a tier or for requests that match an override. Counts separately from the
// rule. The members mean the same as in Rule.
struct Variant {
  std::string tier;  // for a tier; empty for an override
  Match match{};     // for an override
  limit::SharedLimiter limiter;
  std::optional<limit::SharedLimiter> local_share{};
  std::optional<limit::SharedLimiter> soft{};
  std::optional<limit::SharedLimiter> soft_share{};
  std::optional<Elastic> elastic{};
};

// The limit of a client's WebSocket messages. It uses the key of the rule, but counts separately from
// requests.
struct Messages {
  limit::SharedLimiter limiter;
  bool closes = false;  // excess messages close the connection; otherwise they wait
};

// How many units of a key a weir may take from Redis in advance; none if both are 0.
struct Lease {
  std::uint32_t percent = 0;  // of the quota
  limit::Cost units = 0;
};
// Returns the lease in units of the limiter: at most a quarter of its quota.
[[nodiscard]] limit::Cost units_of(const Lease& lease, const limit::Limiter& limiter) noexcept;

// `name` and `limiter` are mandatory; all other members have defaults.
struct Rule {
  std::string name;            // unique, printable ASCII without quotes
  limit::RuleIndex index = 0;  // label of its counters: the same for each name while weir runs
  limit::RuleIndex cells = 0;  // RuleIndex of its keys in the table; changes with its numbers
  Match match{};
  KeyPattern key{};
  OnMissing on_missing = OnMissing::Skip;
  limit::SharedLimiter limiter;
  // The limit while Redis is away: the limit divided by `replicas`. Present only if store is Redis and
  // on_store_failure is Local.
  std::optional<limit::SharedLimiter> local_share{};
  // Soft limit: the limits to enforce instead of `limiter` and `local_share`. They have a margin beyond the
  // limits that clients see.
  std::optional<limit::SharedLimiter> soft{};
  std::optional<limit::SharedLimiter> soft_share{};
  std::optional<Elastic> elastic{};
  std::vector<Variant> overrides{};  // the first match wins, before tiers
  std::vector<Variant> tiers{};
  limit::Cost cost = 1;  // also used if cost_from finds no cost in the request
  CostSource cost_from{};
  // Bytes of the body that conditions, overrides and cost read; 0: no body is needed.
  std::uint64_t max_body = 0;
  std::uint64_t queue_per_client = kNoBound;  // places in a queue that one client may occupy
  Store store = Store::Memory;
  OnStoreFailure on_store_failure = OnStoreFailure::Local;
  std::optional<Lease> lease{};
  Hold hold = Hold::Client;  // for concurrency limits
  Mode mode = Mode::Enforce;
  unsigned refusal_status = 429;
  std::optional<std::string> refusal_body{};
  // The response corrects the charge. Until then `cost` is reserved.
  std::optional<Settlement> settlement{};
  std::optional<Messages> messages{};
  // digest_of_asks() of the rule. Logged values of the rule stay valid while this is unchanged.
  std::uint32_t asks = 0;
  // marks_of() the rule, computed in advance. Names are the same without it.
  std::vector<base::Digest128> marks{};
};

// Returns a digest of all that a rule reads from requests and responses: conditions, key and cost, but not
// its numbers.
[[nodiscard]] std::uint32_t digest_of_asks(const Rule& rule);

// Returns for each limiter ID the digest that distinguishes its names from all others (see name_key.cpp).
[[nodiscard]] std::vector<base::Digest128> marks_of(const Rule& rule);

// Returns the key that counts a client's messages, given the key of its requests.
[[nodiscard]] constexpr limit::Key message_key(const limit::Key& of_requests) noexcept {
  return {of_requests.lo ^ 0x6d657373'61676573, of_requests.hi};
}

// The maximum number of overrides and tiers of a rule together. Their numbers are part of keys, and must fit
// AppliedLimiter::variant.
inline constexpr std::size_t kMostVariants = 65'534;

// The limiter of a rule that applies to a request.
struct AppliedLimiter {
  const limit::Limiter* limiter;  // the limiter to enforce
  const limit::Limiter* told;     // the limiter that clients see; smaller with a soft limit
  std::uint16_t variant = 0;      // 0 the rule itself, then overrides, then tiers; part of the key
  bool elastic = false;           // the elastic limiter of the variant, whose names differ
  bool paired = false;            // the variant has two limiters, and both must be charged
  bool counted = false;           // this is the other limiter: charged, but it decides nothing
};
// A variant has an even limiter ID; its elastic limiter has the odd one after it.
[[nodiscard]] constexpr limit::LimiterId limiter_id_of(std::uint16_t variant, bool elastic) noexcept {
  return variant * limit::LimiterId{2} + (elastic ? 1 : 0);
}
// The limiter ID of messages follows those of all variants.
[[nodiscard]] inline limit::LimiterId message_limiter_id(const Rule& rule) noexcept {
  return limiter_id_of(static_cast<std::uint16_t>(1 + rule.overrides.size() + rule.tiers.size()), false);
}
[[nodiscard]] AppliedLimiter applied_limiter(const Rule& rule, const Request& request);

// Returns a limiter of a variant, independent of any request.
[[nodiscard]] AppliedLimiter limiter_of(const Rule& rule, std::uint16_t variant, bool elastic);

// Returns the other limiter of a pair. REQUIRES: applied.paired.
[[nodiscard]] AppliedLimiter counted_limiter(const Rule& rule, const AppliedLimiter& applied);
// Returns the limiter to enforce here while Redis is away. Returns `applied` if it has no local share.
[[nodiscard]] AppliedLimiter local_limiter(const Rule& rule, const AppliedLimiter& applied);

}  // namespace weir::policy
