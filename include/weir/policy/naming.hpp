// Names clients in the key table and in Redis. A name is a digest of the values in a rule's key, computed
// with a secret key. Pure.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/siphash.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/slot_hash.hpp"
#include "weir/policy/rule.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <optional>
#include <string_view>

namespace weir::policy {

// The secret keys for names. `table` is random in each process. `shared` derives from key_secret, so that all
// weirs that share a Redis use the same names in Redis.
struct NamingKeys {
  base::SipKey table;
  base::SipKey shared;
  bool slot_hashes = false;  // true: names in Redis begin with a slot hash (limit/slot_hash.hpp)
};

// The digest of one address, remembered from request to request of a connection. Most rules have the key
// ["ip"], and most connections have one address. The digest is never out of date, because it is used only
// for the address and the secret key from which it was computed.
struct AddressDigest {
  bool known = false;
  base::SipKey key;
  base::IpAddress network;
  base::Digest128 digest;
};

// Returns the digest that names a client in a rule. An empty attribute counts as missing. If a part of the
// key is missing, uses the client's address if on_missing is "ip", and returns nullopt otherwise. `key`: the
// secret key of the digest. REQUIRES: `applied` is one of the rule's limiters.
[[nodiscard]] std::optional<limit::Key> name_key(const Rule& rule, const AppliedLimiter& applied,
                                                 const Request& request, base::SipKey key);

// Computes name_key() and name_in_redis() for many rules of one request. Consecutive rules with the same key
// share one digest of the client. Keeps references: the request and the rules must outlive the namer and must
// not change.
class Namer {
 public:
  explicit Namer(const Request& request) noexcept : request_(request) {}
  [[nodiscard]] std::optional<limit::Key> name(const Rule& rule, const AppliedLimiter& applied,
                                               base::SipKey key);
  // Returns the same as the free function name_in_redis() below.
  [[nodiscard]] std::optional<limit::Key> name_in_redis(const Rule& rule, const AppliedLimiter& applied,
                                                        const NamingKeys& keys);

 private:
  const Request& request_;
  const Rule* last_ = nullptr;          // the rule whose key was used for `who_`
  base::SipKey key_;                    // the secret key with which `who_` was computed
  std::optional<base::Digest128> who_;  // the client's digest; nullopt: a part of the key is missing
};

// Returns the slot hash of the client in a rule. The slot hash depends only on the part of the key that
// identifies the client best. So one Redis node holds all keys of a client, for example the keys ["api_key"]
// and ["api_key", "path"]. REQUIRES: name_key() returns a key for the request.
[[nodiscard]] limit::SlotHash slot_hash_of_client(const Rule& rule, const Request& request, base::SipKey key);

// Returns the client's name in Redis for a rule. Returns nullopt in the same cases as name_key(). Logs show
// this name even while Redis is unavailable, although the key table then uses another name.
[[nodiscard]] std::optional<limit::Key> name_in_redis(const Rule& rule, const AppliedLimiter& applied,
                                                      const Request& request, const NamingKeys& keys);

// Returns a name of the client that does not depend on any rule: a digest of the client's values for the
// pattern's attributes. The client's address replaces each missing value.
[[nodiscard]] base::Digest128 name_client(const KeyPattern& pattern, const Request& request,
                                          base::SipKey key);

// Returns the name of an API key for logs. The name is the same in all rules, and in all weirs with the same
// key_secret. Returns nullopt if the request has no API key.
[[nodiscard]] std::optional<base::Digest128> name_api_key(const ClientIdentity& client,
                                                          const NamingKeys& keys);
// Returns the digest that stands for a value of a question in logs. All weirs with the same key_secret have
// the same digest. `key`: the descriptor key to which the value belongs.
[[nodiscard]] base::Digest128 name_descriptor_value(std::string_view key, std::string_view value,
                                                    const NamingKeys& keys);

}  // namespace weir::policy
