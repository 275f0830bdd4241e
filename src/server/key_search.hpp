// Finds a key of a rule by what weir shows of its client: `weir top`, the dashboard and the access log show a
// digest, its first digits, or a label such as "api_key of paula". Pure.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/observe/top_clients.hpp"
#include "weir/policy/rule.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::app {

// A key that was found. Its name is the one that people are shown (policy::name_in_redis).
struct ShownKey {
  limit::Key name;
  std::optional<limit::Ledger> ledger;  // of the limiter that counts it; absent: the digest alone is known
  std::string label;                    // as answers name the client
};

// Returns the clients in `top` that `texts` may mean, each once. A text is a label, a label with a digest
// behind it, or a digest of 8 to 32 digits. "user:paula" also means the API key of paula.
[[nodiscard]] std::vector<ShownKey> find_shown(const policy::Rule& rule, const observe::TopOfRule& top,
                                               std::span<const std::string> texts);

// Returns the key that a whole digest names, whether or not anybody counts it; nullopt if `texts` is no
// digest.
[[nodiscard]] std::optional<ShownKey> read_digest(std::span<const std::string> texts);

// Returns true if `top` has a client of this name.
[[nodiscard]] bool lists(const observe::TopOfRule& top, const limit::Key& name);

}  // namespace weir::app
