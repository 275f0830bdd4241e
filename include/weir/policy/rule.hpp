// A rule: which requests it limits, how it distinguishes clients, and its limits. Immutable after the
// configuration was read.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/limit/adapt.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/shared_limiter.hpp"
#include "weir/policy/cost.hpp"
#include "weir/policy/match.hpp"
#include "weir/policy/rules/key_pattern.hpp"
#include "weir/policy/settlement.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::policy {

inline constexpr std::uint64_t kNoBound = ~std::uint64_t{0};

enum class OnMissing : std::uint8_t { Skip, Ip, Reject };
enum class Store : std::uint8_t { Memory, Redis };
enum class OnStoreFailure : std::uint8_t { Local, Open, Closed };
// When a concurrency limit releases the permit of a request.
enum class Hold : std::uint8_t {
  Client,  // when the client has received the response, or has closed its connection
  Answer,  // when the server's response has ended, even if the client has closed its connection
};
enum class Mode : std::uint8_t { Enforce, Shadow };

// A higher limit, which weir enforces while the load is low. The elastic limit and the rule's own limit have
// separate counters, and every request is charged to both. So the counter of the rule's own limit is already
// correct when the load rises.
struct Elastic {
  limit::SharedLimiter limiter;
  std::optional<limit::SharedLimiter> local_share{};  // the limit while Redis is away, like Rule::local_share
  double while_load_below = 0;                        // enforced while Request::load is below this value
};

// Makes the rule grant less while an upstream is unwell (limit/adapt.hpp).
struct Adapt {
  std::string upstream;  // the name of an upstream of the configuration
  limit::AdaptTerms terms{};
  friend bool operator==(const Adapt&, const Adapt&) = default;
};

// One limiter for each reduced factor of a rule (or tier, or override) with `adapt`: element i grants i + 1
// twentieths of the limit. The last element grants kWholeFactor - 1 twentieths. Empty if the rule does not
// adapt.
using ScaledLimiters = std::vector<limit::SharedLimiter>;

// Other limits of the rule, for a tier or for requests that match an override. Their counters are separate
// from those of the rule. The members have the same meanings as the members of Rule.
struct Variant {
  std::string tier;  // the name of the tier; empty for an override
  Match match{};     // the conditions of an override
  limit::SharedLimiter limiter;
  std::optional<limit::SharedLimiter> local_share{};
  std::optional<limit::SharedLimiter> soft{};
  std::optional<limit::SharedLimiter> soft_share{};
  std::optional<Elastic> elastic{};
  ScaledLimiters scaled{}, scaled_share{};
};

// The senders whose gRPC messages a rule counts. A rule counts only those WebSocket messages that the client
// sends. So with Server, a rule counts no WebSocket message.
enum class MessageDirection : std::uint8_t { Client, Server, Both };

// The limit of a client's WebSocket messages and of the messages of its gRPC calls. Messages have the same
// key as requests, but a separate counter.
struct Messages {
  limit::SharedLimiter limiter;
  bool closes = false;  // true: excess messages end the WebSocket or the call; false: they are delayed
  MessageDirection direction = MessageDirection::Client;
};

// The number of units of a key that one weir process may take from Redis in advance. If both members are 0,
// the process takes no units in advance.
struct Lease {
  std::uint32_t percent = 0;  // percent of the quota
  limit::Cost units = 0;
};
// Returns how many units to take from Redis at once: at most a quarter of the limiter's quota.
[[nodiscard]] limit::Cost units_of(const Lease& lease, const limit::Limiter& limiter) noexcept;

// `name` and `limiter` are mandatory; all other members have defaults.
struct Rule {
  std::string name;            // unique, printable ASCII without quotes
  limit::RuleIndex index = 0;  // index of the rule's counters; fixed for a rule name while weir runs
  // the number under which the key table stores the rule's keys; may change with the rule's limits
  limit::RuleIndex rule_number = 0;
  Match match{};
  KeyPattern key{};
  OnMissing on_missing = OnMissing::Skip;
  limit::SharedLimiter limiter;
  // The limit that applies while Redis is unavailable: the rule's limit divided by `replicas`. Present only
  // if `store` is Redis and `on_store_failure` is Local.
  std::optional<limit::SharedLimiter> local_share{};
  // Soft limit: the limits that weir enforces instead of `limiter` and `local_share`. These limits are higher
  // than the limits that clients see.
  std::optional<limit::SharedLimiter> soft{};
  std::optional<limit::SharedLimiter> soft_share{};
  std::optional<Elastic> elastic{};
  // Reduces the limit while an upstream is unwell. Cannot be combined with soft or elastic limits, `lease` or
  // `penalty`. `scaled` has `limiter` reduced by each factor, and `scaled_share` has `local_share` reduced by
  // each factor.
  std::optional<Adapt> adapt{};
  ScaledLimiters scaled{}, scaled_share{};
  std::vector<Variant> overrides{};  // the first matching override applies, even if a tier would apply, too
  std::vector<Variant> tiers{};
  // the cost of a request, unless cost_from finds another cost in the request, or a question states a cost
  limit::Cost cost = 1;
  CostSource cost_from{};
  // True: a question is charged its whole cost, even beyond the limit, because the action that the question
  // reports has taken place already. The question is refused if no unit was left before. Only for rules with
  // descriptor_keys whose limiter can be settled, without elastic limits, `penalty`, `lease` or
  // `settlement`.
  bool overdraft = false;
  // Bytes of the body that conditions, overrides, key and cost read; 0: no body is needed.
  std::uint64_t max_body = 0;
  std::uint64_t queue_per_client = kNoBound;  // the most queued requests of one client
  Store store = Store::Memory;
  OnStoreFailure on_store_failure = OnStoreFailure::Local;
  std::optional<Lease> lease{};
  // Refuses a key for longer if its limiter refuses too often. Cannot be combined with elastic limits,
  // `lease` or concurrency limits.
  std::optional<limit::Penalty> penalty{};
  Hold hold = Hold::Client;  // when a concurrency limit releases permits
  Mode mode = Mode::Enforce;
  unsigned refusal_status = 429;
  std::optional<std::string> refusal_body{};
  std::string refusal_content_type = "text/plain; charset=utf-8";  // the content type of refusal_body
  std::string refusal_fields{};     // further field lines of refusals, each with its CRLF
  unsigned retry_after_jitter = 0;  // percent by which a refusal's Retry-After may be longer
  // How the response corrects the charge. Until the response arrives, `cost` is reserved.
  std::optional<Settlement> settlement{};
  std::optional<Messages> messages{};
  // Paces bodies to this rate, such as "1MiB/s"; empty: the rule limits requests. If set, `limiter` is a
  // leaky bucket of octets. The rule then refuses no request and adds no charge to a bill.
  std::string bandwidth{};
  // For a rule with `bandwidth`: how far the charges of one key may run ahead of the rate. Octets beyond that
  // wait, and are charged later.
  static constexpr base::Duration kLongestPaceLead = std::chrono::seconds{10};
  // The result of digest_of_asks() for this rule. Logged values of the rule can be replayed while the digest
  // is unchanged.
  std::uint32_t asks = 0;
  // The result of descriptor_keys_of(), computed in advance. If not empty, weir tests the rule against each
  // descriptor of a question, and the rule never applies to requests without descriptors.
  std::vector<std::string> descriptor_keys{};
  // The results of marks_of(), computed in advance. If the list is empty, weir computes them for each
  // request.
  std::vector<base::Digest128> marks{};
};

// Returns the value of Charge::penalty for the requests of a rule.
[[nodiscard]] inline const limit::Penalty* penalty_of(const Rule& rule) noexcept {
  return rule.penalty ? &*rule.penalty : nullptr;
}

// Returns the keys of all descriptor entries that the rule's conditions, overrides and `key` name. Returns
// none if the rule can apply to a request without a descriptor: the rule has no `match.descriptor`, and each
// part of `key` has an alternative that is no descriptor.
[[nodiscard]] std::vector<std::string> descriptor_keys_of(const Rule& rule);

// Returns a digest of everything that a rule reads from requests and responses: conditions, key and cost. The
// digest does not depend on the rule's limits.
[[nodiscard]] std::uint32_t digest_of_asks(const Rule& rule);

// Returns the marks of the rule's limiters, by limiter ID. A mark is a digest that identifies the limiter.
// Because of the mark, a client has another name under each limiter (see name_key.cpp).
[[nodiscard]] std::vector<base::Digest128> marks_of(const Rule& rule);

// Converts the key of a client's requests into the key of its messages.
[[nodiscard]] constexpr limit::Key message_key(const limit::Key& of_requests) noexcept {
  return {of_requests.lo ^ 0x6d657373'61676573, of_requests.hi};
}

}  // namespace weir::policy
