// Patterns in the configuration that texts, paths and hosts of requests must match. Pure.
#pragma once

#include "weir/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::policy {

// A test of a text. The test is for equality, for a regular expression (RE2) that is found anywhere in the
// text, or for presence.
class TextMatch {
 public:
  // Parses "text" (equality) or "~regex". The error says what is wrong with the expression.
  [[nodiscard]] static base::Result<TextMatch> parse(std::string_view pattern);
  // Parses "regex", without "~". The error has RE2's words alone, such as "missing ): (".
  [[nodiscard]] static base::Result<TextMatch> parse_expression(std::string_view expression);
  [[nodiscard]] static TextMatch present();
  [[nodiscard]] bool holds(std::string_view text) const;
  // Returns the number of groups of the expression. REQUIRES that this is a regular expression.
  [[nodiscard]] std::size_t groups() const;
  // Searches the text for the expression. If it is found, stores the whole match in found[0] and the groups
  // in the other elements. A group that took no part in the match is empty. REQUIRES that this is a regular
  // expression, and at most groups() + 1 elements.
  [[nodiscard]] bool find(std::string_view text, std::span<std::string_view> found) const;
  // Returns true if every text that matches `other` also matches this test. For two regular expressions,
  // returns true only if they are equal.
  [[nodiscard]] bool covers(const TextMatch& other) const;
  [[nodiscard]] std::string describe() const;
  // Returns true if this is a test for presence, which every value that is present meets.
  [[nodiscard]] bool is_present() const noexcept { return any_; }
  // Returns the only text that matches; null if this is not a test for equality.
  [[nodiscard]] const std::string* exact() const noexcept { return regex_ || any_ ? nullptr : &exact_; }

 private:
  struct Regex;
  std::string exact_;
  std::shared_ptr<const Regex> regex_;  // shared by copies, because a compiled expression never changes
  bool any_ = false;
};

// A condition on the value with this name, such as a header.
struct NamedText {
  std::string name;
  TextMatch text;
};

// The error message for a regular expression for paths that contains octets beyond ASCII.
inline constexpr std::string_view kNeverInPaths =
    "can never match, because paths are ASCII; write other characters as %XX of their UTF-8";
[[nodiscard]] bool is_ascii(std::string_view text) noexcept;

// A path pattern. "/login" matches exactly. "/api/*" matches the paths below /api/, and "/api/". "/api*"
// matches every path with that prefix. "*" and "/*" match everything, also `OPTIONS *`. "~regex" searches the
// normal form of the path. Other patterns may encode octets in any way: "/caf%c3%a9" or "/café". A pattern
// that no normal path can match is an error.
class PathMatch {
 public:
  [[nodiscard]] static base::Result<PathMatch> parse(std::string_view pattern);
  [[nodiscard]] bool holds(std::string_view path) const;
  // Returns true if this pattern matches every path that `other` matches. For two regular expressions,
  // returns true only if they are equal.
  [[nodiscard]] bool covers(const PathMatch& other) const;
  // Returns true if this pattern matches every path that begins with '/'. Returns false for every regular
  // expression.
  [[nodiscard]] bool holds_of_all() const noexcept { return prefix_ && text_.size() <= 1; }
  // Returns the beginning that all paths matched by this pattern have in common. Empty for a regular
  // expression.
  [[nodiscard]] std::string_view literal_start() const noexcept { return text_; }
  [[nodiscard]] std::string describe() const;

 private:
  std::string text_;
  bool prefix_ = false;
  std::optional<TextMatch> regex_;
};

// A pattern for hosts, of three kinds:
// * "api.example.com" matches this host.
// * "*.example.com" matches every host that has one or more labels before ".example.com". It does not match
//   "example.com".
// * "~regex" searches the host without regard to case.
// Hosts of requests are compared in normal form (http::normalise_host()).
class HostMatch {
 public:
  // The error says what is expected instead, without the pattern.
  [[nodiscard]] static base::Result<HostMatch> parse(std::string_view pattern);
  [[nodiscard]] bool holds(std::string_view host) const {
    switch (kind_) {
      case Kind::Exact:
        return host == text_;
      case Kind::Below:
        return host.size() > text_.size() && host.ends_with(text_);
      case Kind::Regex:
        break;
    }
    return regex_->holds(host);
  }
  // Returns true if this pattern matches every host that `other` matches. For a regular expression `other`,
  // returns true only if both expressions are equal.
  [[nodiscard]] bool covers(const HostMatch& other) const;
  // Returns true if no host matches both patterns. If one is a regular expression, may return false although
  // no host matches both.
  [[nodiscard]] bool is_disjoint(const HostMatch& other) const;
  [[nodiscard]] bool is_exact() const noexcept { return kind_ == Kind::Exact; }
  [[nodiscard]] bool is_expression() const noexcept { return kind_ == Kind::Regex; }
  // Returns a host that the pattern matches. Returns nullopt for a regular expression.
  [[nodiscard]] std::optional<std::string> sample() const;
  // Returns the pattern in normal form.
  [[nodiscard]] std::string describe() const;

 private:
  enum class Kind : std::uint8_t { Exact, Below, Regex };
  Kind kind_ = Kind::Exact;
  std::string text_;  // the host; of "*.example.com" the text ".example.com"; of "~regex" the expression
  std::optional<TextMatch> regex_;
};

}  // namespace weir::policy
