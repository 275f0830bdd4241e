#include "weir/policy/routing/patterns.hpp"

#include "weir/http/target.hpp"

#include <algorithm>

#include <re2/re2.h>

namespace weir::policy {

// A compiled regular expression, which matches octets instead of UTF-8 characters. In UTF-8 mode, '.' would
// not match an invalid octet, so a client could evade the expression.
struct TextMatch::Regex {
  explicit Regex(std::string_view pattern)
      : expression(re2::StringPiece(pattern.data(), pattern.size()), options()) {}

  static RE2::Options options() {
    RE2::Options o;
    o.set_encoding(RE2::Options::EncodingLatin1);
    o.set_log_errors(false);
    return o;
  }

  RE2 expression;
};

base::Result<TextMatch> TextMatch::parse(std::string_view pattern) {
  TextMatch match;
  match.exact_ = pattern;
  if (!pattern.starts_with('~')) return match;
  auto regex = std::make_shared<const Regex>(pattern.substr(1));
  if (!regex->expression.ok())
    return base::Error{"\"" + match.exact_ + "\" is not a regular expression: " + regex->expression.error()};
  match.regex_ = std::move(regex);
  return match;
}

TextMatch TextMatch::present() {
  TextMatch match;
  match.any_ = true;
  return match;
}

bool TextMatch::holds(std::string_view text) const {
  if (any_) return true;
  if (!regex_) return text == exact_;
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), regex_->expression);
}

bool TextMatch::covers(const TextMatch& other) const {
  if (any_ || other.any_) return any_;
  return exact_ == other.exact_ || (!other.regex_ && holds(other.exact_));
}

std::string TextMatch::describe() const {
  return any_ ? "present" : exact_;
}

base::Result<PathMatch> PathMatch::parse(std::string_view pattern) {
  const auto wrong = [&](const std::string& why) {
    return base::Error{"\"" + std::string(pattern) + "\" " + why};
  };
  PathMatch match;
  if (pattern.starts_with('~')) {
    if (std::any_of(pattern.begin(), pattern.end(), [](unsigned char c) { return c >= 0x80; }))
      return wrong("can never match, because paths are ASCII; write other characters as %XX of their UTF-8");
    auto regex = TextMatch::parse(pattern);
    if (!regex) return regex.error();
    match.regex_ = std::move(*regex);
    return match;
  }
  match.prefix_ = pattern.ends_with('*');
  match.text_ = pattern.substr(0, pattern.size() - (match.prefix_ ? 1 : 0));
  if (match.text_.empty() && match.prefix_) return match;
  if (!match.text_.starts_with('/'))
    return wrong("is not a path; write \"/exact\", \"/below/*\" or \"~regex\"");
  if (match.text_.find('*') != std::string::npos)
    return wrong("has a '*' before its end; only the last character may be '*', or write \"~regex\"");
  if (match.text_.find_first_of("?#") != std::string::npos)
    return wrong("is more than a path; match the query with `query`");
  // A prefix may end inside an escape, such as "/a%". So this check appends "x", which cannot complete the
  // escape.
  const std::string spelt = http::path_spelling(match.text_ + (match.prefix_ ? "x" : ""));
  std::string scratch;
  const auto normal = http::normalise_path(spelt, scratch);
  if (normal != spelt || http::path_warning(match.text_) != nullptr)
    return wrong("can never match, because weir compares normalized paths; write " + std::string(normal));
  match.text_ = spelt.substr(0, spelt.size() - (match.prefix_ ? 1 : 0));
  return match;
}

bool PathMatch::holds(std::string_view path) const {
  if (regex_) return regex_->holds(path);
  if (path == "*") return prefix_ && (text_.empty() || text_ == "/");
  return prefix_ ? path.starts_with(text_) : path == text_;
}

bool PathMatch::covers(const PathMatch& other) const {
  if (other.regex_) return regex_ ? regex_->covers(*other.regex_) : prefix_ && text_.empty();
  if (!other.prefix_) return holds(other.text_);
  return prefix_ && other.text_.starts_with(text_);
}

std::string PathMatch::describe() const {
  return regex_ ? regex_->describe() : text_ + (prefix_ ? "*" : "");
}

}  // namespace weir::policy
