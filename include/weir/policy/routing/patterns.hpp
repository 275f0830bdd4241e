// Patterns of a configuration for texts and paths of requests. Pure.
#pragma once

#include "weir/base/result.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::policy {

// A test of a text. The test is for equality, for a regular expression (RE2) that is found anywhere in the
// text, or for presence.
class TextMatch {
 public:
  // Parses "text" (equality) or "~regex". The error says what is wrong with the expression.
  [[nodiscard]] static base::Result<TextMatch> parse(std::string_view pattern);
  [[nodiscard]] static TextMatch present();
  [[nodiscard]] bool holds(std::string_view text) const;
  // Returns true if every text for which `other` holds also passes this test. For two regular expressions,
  // returns true only if they are equal.
  [[nodiscard]] bool covers(const TextMatch& other) const;
  [[nodiscard]] std::string describe() const;

 private:
  struct Regex;
  std::string exact_;
  std::shared_ptr<const Regex> regex_;  // shared by copies, because a compiled expression never changes
  bool any_ = false;
};

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

}  // namespace weir::policy
