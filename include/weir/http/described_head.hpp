// Writes the head of a request that weir did not receive, from its description. An administrator describes
// requests with `weir explain`, a program in questions. weir parses the text like the head of a real request.
// Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weir::http {

using DescribedFields = std::span<const std::pair<std::string, std::string>>;

struct DescribedHead {
  std::string_view method;
  std::string_view target;
  std::string_view host;  // empty: writes no Host field, but `fields` may have one
  DescribedFields fields;
  unsigned minor_version = 1;  // the x of HTTP/1.x; 0 permits a request without Host
};

// Returns true if a field has this name, ignoring case.
[[nodiscard]] bool has_field(DescribedFields fields, std::string_view name) noexcept;

struct DescribedAnswer {
  unsigned status;
  DescribedFields fields;
};

// Return the text of the head. Return nullopt if a part contains a line break or a NUL byte.
[[nodiscard]] std::optional<std::string> head_text(const DescribedHead& head);
[[nodiscard]] std::optional<std::string> head_text(const DescribedAnswer& head);

}  // namespace weir::http
