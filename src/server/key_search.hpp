// Finds a key of a rule by what weir shows of its client. `weir top`, the dashboard and the access log show a
// digest, its first digits, or a label such as "api_key of paula". Pure.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/observe/top_clients.hpp"
#include "weir/policy/rule.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::server {

// A key that was found. `name` is the name that people see (policy::name_in_redis).
struct ShownKey {
  limit::Key name;
  std::optional<limit::LimiterId>
      limiter_id;     // of the limiter that counts it; absent: only the digest is known
  std::string label;  // the client's name in replies
};

// Returns the clients in `top` that `texts` may mean, each once. `texts` is a label, a digest of 8 to 32
// digits, or both. "user:paula" also means the API key of paula.
[[nodiscard]] std::vector<ShownKey> find_shown(const policy::Rule& rule, const observe::TopOfRule& top,
                                               std::span<const std::string> texts);

// Returns the key of a whole digest, even if no rule counts it; nullopt if `texts` is no digest.
[[nodiscard]] std::optional<ShownKey> read_digest(std::span<const std::string> texts);

// Returns true if `top` has a client of this name.
[[nodiscard]] bool lists(const observe::TopOfRule& top, const limit::Key& name);

}  // namespace weir::server
