#include "weir/policy/routing/patterns.hpp"

#include "weir/base/host.hpp"
#include "weir/base/ip_address.hpp"
#include "weir/http/target.hpp"

#include <algorithm>
#include <vector>

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
  if (pattern.starts_with('~')) {
    auto match = parse_expression(pattern.substr(1));
    if (match) return match;
    return base::Error{"\"" + std::string(pattern) +
                       "\" is not a regular expression: " + match.error().message};
  }
  TextMatch match;
  match.exact_ = pattern;
  return match;
}

base::Result<TextMatch> TextMatch::parse_expression(std::string_view expression) {
  auto regex = std::make_shared<const Regex>(expression);
  if (!regex->expression.ok()) return base::Error{regex->expression.error()};
  TextMatch match;
  match.exact_ = "~" + std::string(expression);
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

std::size_t TextMatch::groups() const {
  return static_cast<std::size_t>(regex_->expression.NumberOfCapturingGroups());
}

bool TextMatch::find(std::string_view text, std::span<std::string_view> found) const {
  std::vector<re2::StringPiece> groups(found.size());
  const re2::StringPiece searched(text.data(), text.size());
  if (!regex_->expression.Match(searched, 0, text.size(), RE2::UNANCHORED, groups.data(),
                                static_cast<int>(groups.size())))
    return false;
  for (std::size_t i = 0; i < groups.size(); ++i) found[i] = {groups[i].data(), groups[i].size()};
  return true;
}

bool TextMatch::covers(const TextMatch& other) const {
  if (any_ || other.any_) return any_;
  return exact_ == other.exact_ || (!other.regex_ && holds(other.exact_));
}

std::string TextMatch::describe() const {
  return any_ ? "present" : exact_;
}

bool is_ascii(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; });
}

base::Result<PathMatch> PathMatch::parse(std::string_view pattern) {
  const auto wrong = [&](const std::string& why) {
    return base::Error{"\"" + std::string(pattern) + "\" " + why};
  };
  PathMatch match;
  if (pattern.starts_with('~')) {
    if (!is_ascii(pattern)) return wrong(std::string(kNeverInPaths));
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
  if (normal != spelt || http::path_warning(match.text_) != nullptr) {
    const auto advice = match.prefix_ && normal.ends_with('x')
                            ? std::string(normal.substr(0, normal.size() - 1)) + "*"
                            : std::string(normal);
    return wrong("can never match, because weir compares normalized paths; write " + advice);
  }
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

namespace {

constexpr std::string_view kAnyLabels = "*.";

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (auto& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// Returns the error text ("expected …") if `name`, which is in lower case, is not a valid host; null if it is
// valid.
const char* fault_of_host(std::string_view name) {
  const bool v6 = name.starts_with('[') && name.ends_with(']');
  if (name.empty() || name.find('*') != std::string_view::npos || !http::valid_authority(name) ||
      (!v6 && name.find(':') != std::string_view::npos))
    return "expected a name without port, such as \"api.example.com\", \"*.example.com\" or \"~regex\"";
  return base::is_false_ipv4(name) ? "expected an IPv4 address of four numbers from 0 to 255, or a name: no "
                                     "name ends in a number"
                                   : nullptr;
}

}  // namespace

base::Result<HostMatch> HostMatch::parse(std::string_view pattern) {
  HostMatch match;
  if (pattern.starts_with('~')) {
    const auto plain = TextMatch::parse(pattern);  // its error shows the expression as the user wrote it
    if (!plain) return plain.error();
    // Makes the expression ignore case, because weir compares hosts in lower case.
    auto regex = TextMatch::parse("~(?i)" + std::string(pattern.substr(1)));
    if (!regex) return regex.error();
    match.kind_ = Kind::Regex;
    match.text_ = pattern.substr(1);
    match.regex_ = std::move(*regex);
    return match;
  }
  if (const auto address = base::IpAddress::parse(pattern);
      address && pattern.find(':') != std::string_view::npos)
    return base::Error{"an IPv6 address needs brackets: write host = \"[" + std::string(pattern) + "]\""};
  const bool below = pattern.starts_with(kAnyLabels);
  auto name = in_lower_case(below ? pattern.substr(kAnyLabels.size()) : pattern);
  if (name.ends_with('.')) name.pop_back();
  if (const auto* const fault = fault_of_host(name)) return base::Error{fault};
  std::string scratch;
  match.kind_ = below ? Kind::Below : Kind::Exact;
  match.text_ = (below ? "." : "") + std::string(http::normalise_host(name, scratch));
  return match;
}

bool HostMatch::covers(const HostMatch& other) const {
  if (other.kind_ == Kind::Regex) return kind_ == Kind::Regex && text_ == other.text_;
  if (other.kind_ == Kind::Exact) return holds(other.text_);
  return kind_ == Kind::Below && other.text_.ends_with(text_);
}

bool HostMatch::is_disjoint(const HostMatch& other) const {
  if (is_exact()) return !other.holds(text_);
  if (other.is_exact()) return !holds(other.text_);
  if (kind_ == Kind::Regex || other.kind_ == Kind::Regex) return false;
  return !covers(other) && !other.covers(*this);
}

std::optional<std::string> HostMatch::sample() const {
  if (kind_ == Kind::Regex) return std::nullopt;
  return kind_ == Kind::Below ? "www" + text_ : text_;
}

std::string HostMatch::describe() const {
  return (kind_ == Kind::Below ? "*" : kind_ == Kind::Regex ? "~" : "") + text_;
}

}  // namespace weir::policy
