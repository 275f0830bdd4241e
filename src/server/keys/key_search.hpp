// Finds a key of a rule by a text that identifies its client. `weir top`, the dashboard and the access log
// show such texts: a digest, the first digits of a digest, or a label such as "api_key of paula". Pure.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/observe/top_clients.hpp"
#include "weir/policy/rule.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::server {

// A key that the search found. `name`: the name that people see (policy::name_in_redis).
struct ShownKey {
  limit::Key name;
  // ID of the limiter that counts this key; nullopt if only the digest is known.
  std::optional<limit::LimiterId> limiter_id;
  std::string label;  // the client's name in the admin listener's replies
};

// Returns the clients in `top` that match `texts`, without repetitions. `texts`: a label, a digest of 8 to 32
// digits, or both. "user:paula" also matches the API key of paula.
[[nodiscard]] std::vector<ShownKey> find_shown(const policy::Rule& rule, const observe::TopOfRule& top,
                                               std::span<const std::string> texts);

// Returns the key if `texts` is a single complete digest, otherwise nullopt. Does not check whether a limiter
// of the rule counts this key.
[[nodiscard]] std::optional<ShownKey> read_digest(std::span<const std::string> texts);

// Returns true if `top` has a client with this name.
[[nodiscard]] bool lists(const observe::TopOfRule& top, const limit::Key& name);

}  // namespace weir::server
