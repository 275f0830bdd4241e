// Reads a value by name from a header, the query or cookies. The value may be repeated, but all must be
// equal. If values differ, weir cannot know which value the upstream uses, and an attacker could exploit the
// difference.
//
// Pure. Results: nullopt if values differ; empty if there is no value or the value is empty.
#pragma once

#include "weir/http/head.hpp"
#include "weir/http/percent.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::policy {

// One value, given once or repeated. An empty value counts as given.
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

// Reads all lines of the field; the name ignores case. Returns nullopt also for more than max_repeats lines.
[[nodiscard]] std::optional<std::string_view> value_in_header(const http::RequestHead& head,
                                                              std::string_view name) noexcept;

// Returns true if `raw` is an encoding of the parameter name. '+' may stand for a blank or itself, because
// servers differ.
[[nodiscard]] bool is_parameter(std::string_view raw, std::string_view name) noexcept;

// Reads all parameters of the name, decoded, with '+' as a blank. If the upstream does not read '+' as a
// blank, two of its clients may share a limit. Returns nullopt also if the request exceeds a bound
// (http::ParameterBounds); cookies likewise.
[[nodiscard]] std::optional<std::string_view> value_in_query(const http::RequestHead& head,
                                                             std::string_view name);

// Reads all cookies of the name, which is case-sensitive; all must be equal as received. Servers differ about
// quotes and encoding, so the result has no quotes and is decoded. `decoded` stores it if it was encoded.
[[nodiscard]] std::optional<std::string_view> value_in_cookies(const http::RequestHead& head,
                                                               std::string_view name, std::string& decoded);

}  // namespace weir::policy
