// Hides values in request targets and questions for logs. Such values may contain credentials, or may
// identify a client.
#pragma once

#include "weir/policy/identity.hpp"
#include "weir/policy/rule.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// The text that replaces a hidden value.
inline constexpr std::string_view kHiddenValue = "***";

// The query parameters, and the values of questions, that are hidden. Immutable after construction.
class Redaction {
 public:
  // Creates an object that hides nothing.
  Redaction() = default;
  // Creates an object that hides `access_token`, which is always a credential (RFC 6750 §2.3). Also hides the
  // query parameters that provide the client's key, user, org, service or device. Hides the values of
  // questions that have one of these names, or the name `authorization`.
  explicit Redaction(const ClientSettings& client);
  // Also hides the query parameters and the values of questions that a rule's key reads.
  void hide(const KeyPattern& key);

  // Returns `target` with each hidden parameter's value replaced by kHiddenValue. Recognises a parameter
  // however its name is encoded. Returns `target` itself if it has no hidden parameter, otherwise a view of
  // `scratch`.
  [[nodiscard]] std::string_view redacted(std::string_view target, std::string& scratch) const;
  // Returns true if the value with this name is hidden in descriptors of questions.
  [[nodiscard]] bool hides_descriptor(std::string_view name) const noexcept;

 private:
  std::vector<std::string> names_;        // names of the hidden parameters, decoded
  std::vector<std::string> descriptors_;  // names of the hidden values of questions
};

// Returns true if the value of the parameter `name` is hidden in a logged query.
[[nodiscard]] bool hides_value(std::string_view query, std::string_view name) noexcept;

}  // namespace weir::policy
