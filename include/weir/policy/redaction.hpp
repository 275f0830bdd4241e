// What a log may say of a request's target: in a query there may stand credentials, and what tells clients
// apart is as good as one. No log has their values.
#pragma once

#include "weir/policy/identity.hpp"
#include "weir/policy/rule.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// What stands for a hidden value.
inline constexpr std::string_view kHiddenValue = "***";

// Which parameters of queries have values that are hidden. Immutable once made.
class Redaction {
 public:
  // None.
  Redaction() = default;
  // `access_token`, which is a credential whoever reads it (RFC 6750 §2.3), and what a client's key, user,
  // org, service or device is read from.
  explicit Redaction(const ClientSettings& client);
  // And what stands in such a key.
  void hide(const KeyPattern& key);

  // `target`, with kHiddenValue for the value of each hidden parameter, however its name is spelt. The same
  // view where there is none, else one of `scratch`.
  [[nodiscard]] std::string_view redacted(std::string_view target, std::string& scratch) const;

 private:
  std::vector<std::string> names_;  // decoded
};

// Whether a query, as a log has it, keeps the value of that parameter to itself.
[[nodiscard]] bool hides_value(std::string_view query, std::string_view name) noexcept;

}  // namespace weir::policy
