// What a request says under a name: in its header, its query, its cookies. It may say so several times, as
// long as it says the same: which of several values the upstream would believe is not for weir to guess, and
// whoever guessed would be given the other one by an attacker.
//
// Pure. nullopt: there are values that differ; empty: none, or an empty one.
#pragma once

#include "weir/http/head.hpp"
#include "weir/http/percent.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::policy {

// One value, said once or several times alike; an empty one counts as said.
class Said {
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

// By all lines of the field; the name without case.
[[nodiscard]] std::optional<std::string_view> said_in_header(const http::Fields& fields,
                                                             std::string_view name) noexcept;

// Whether a parameter's name, as it came, is that one: decoded, and with '+' for a blank or for itself, as
// the upstream may have it.
[[nodiscard]] bool is_parameter(std::string_view raw, std::string_view name) noexcept;

// By all parameters of the name, decoded. Whether '+' is a blank to the upstream is not known: as one it has
// no spelling more than "%20" has, and who takes it for itself shares a limit with whom it should not.
// nullopt also where the request exceeds a bound (http::ParameterBounds); the same of cookies.
[[nodiscard]] std::optional<std::string_view> said_in_query(const http::RequestHead& head,
                                                            std::string_view name);

// By all cookies of the name, which have to be alike as they came; the name with case. Quotes are a part of
// the value to some servers and none to others, and some decode it: so they do not count, and what is told is
// without them and decoded; in `decoded` where it came encoded.
[[nodiscard]] std::optional<std::string_view> said_in_cookies(const http::RequestHead& head,
                                                              std::string_view name, std::string& decoded);

}  // namespace weir::policy
