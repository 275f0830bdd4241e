// The names of clients in the table and in Redis: digests of what a rule's key says, under secret keys. Pure.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/place.hpp"
#include "weir/policy/rule.hpp"

#include <optional>

namespace weir::policy {

// The keys that names are made under: `table` is random per process, `shared` comes from key_secret, so that
// all weirs in front of one Redis agree on names there.
struct NamingKeys {
  base::SipKey table;
  base::SipKey shared;
  bool places = false;  // names in Redis begin with their client's place (limit/place.hpp)
};

// The digest that names a client in a rule; nullopt when a part is missing (and on_missing is not "ip"). An
// attribute that is empty is missing. REQUIRES that `applied` is one of the rule's.
[[nodiscard]] std::optional<limit::Key> name_key(const Rule& rule, const AppliedLimiter& applied,
                                                 const Request& request, base::SipKey key);

// The same for one request and rule after rule: a client is digested once for all rules in a row that tell
// clients apart alike. REQUIRES that the request and the rules outlive it, unchanged.
class Namer {
 public:
  explicit Namer(const Request& request) noexcept : request_(request) {}
  [[nodiscard]] std::optional<limit::Key> name(const Rule& rule, const AppliedLimiter& applied,
                                               base::SipKey key);
  // As the function below.
  [[nodiscard]] std::optional<limit::Key> name_in_redis(const Rule& rule, const AppliedLimiter& applied,
                                                        const NamingKeys& keys);

 private:
  const Request& request_;
  const Rule* last_ = nullptr;          // whose key `who_` was digested by
  base::SipKey key_;                    // and under which
  std::optional<base::Digest128> who_;  // nothing: it lacks a part
};

// Where the client belongs whom a rule's key names: by that part of the key which says most of who it is, so
// that rules for an API key, and for what it does on each path, find it in one place. REQUIRES that
// the rule's key has a name.
[[nodiscard]] limit::Place place_of_client(const Rule& rule, const Request& request, base::SipKey key);

// What Redis calls the client of a rule; nullopt as of name_key(). People know it by that name while Redis is
// away as well, though the table, where the client's share is then counted, has a name of its own for it.
[[nodiscard]] std::optional<limit::Key> name_in_redis(const Rule& rule, const AppliedLimiter& applied,
                                                      const Request& request, const NamingKeys& keys);

// What stands for a client by a pattern of attributes alone, whatever the rules; in the place of a part that
// is missing its address.
[[nodiscard]] base::Digest128 name_client(const KeyPattern& pattern, const Request& request,
                                          base::SipKey key);

// The name of an API key whatever the rule, for logs; nullopt where there is none. Weirs that share
// key_secret agree on it.
[[nodiscard]] std::optional<base::Digest128> name_api_key(const ClientIdentity& client,
                                                          const NamingKeys& keys);

}  // namespace weir::policy
