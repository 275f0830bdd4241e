// Reads a value by name from a header, the query or cookies. The request may repeat the value, but all
// occurrences must be equal. If values differ, weir cannot know which value the upstream uses, and an
// attacker could exploit the difference.
//
// Pure. Results: nullopt if values differ; empty if there is no value or the value is empty.
#pragma once

#include "weir/http/head.hpp"
#include "weir/http/percent.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::policy {

// Collects the occurrences of one value. An empty occurrence counts as a value.
class ConsistentValue {
 public:
  void add(std::string_view value) noexcept {
    differs_ = differs_ || (any_ && value != value_);
    value_ = value;
    any_ = true;
  }
  [[nodiscard]] std::optional<std::string_view> value() const noexcept {
    return differs_ ? std::nullopt : std::optional(value_);
  }

 private:
  std::string_view value_;
  bool any_ = false;
  bool differs_ = false;
};

// Reads all lines of the header, whatever the case of its name. Returns nullopt if their values differ, or if
// there are more than max_repeats lines.
[[nodiscard]] std::optional<std::string_view> value_in_header(const http::RequestHead& head,
                                                              std::string_view name) noexcept;

// Returns true if `raw` decodes to the parameter's name. A '+' in `raw` matches a blank and a '+', because
// servers read it differently.
[[nodiscard]] bool is_parameter(std::string_view raw, std::string_view name) noexcept;

// Reads all parameters with this name, decoded, with '+' as a blank. If the upstream does not read '+' as a
// blank, two of its clients may share a limit. Returns nullopt if values differ, or if the request exceeds a
// bound (http::ParameterBounds). value_in_cookies() returns nullopt in the same cases.
[[nodiscard]] std::optional<std::string_view> value_in_query(const http::RequestHead& head,
                                                             std::string_view name);

// Reads all cookies with this name, which is case-sensitive. The cookies must be equal before they are
// decoded, because servers treat quotes and encoding differently. Returns the value decoded and without
// quotes. If the value was encoded, the result is a view of `decoded`.
[[nodiscard]] std::optional<std::string_view> value_in_cookies(const http::RequestHead& head,
                                                               std::string_view name, std::string& decoded);

}  // namespace weir::policy
