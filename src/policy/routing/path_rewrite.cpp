#include "weir/policy/routing/path_rewrite.hpp"

#include "policy/routing/braces.hpp"

#include "weir/http/target.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::policy {

namespace {

constexpr std::size_t kMostElements = 10;  // the whole match and nine groups

// Returns the normal form of a path in the configuration.
std::string normal_form(std::string_view path) {
  const auto spelt = http::path_spelling(path);
  std::string scratch;
  return std::string(http::normalise_path(spelt, scratch));
}

// Returns what is wrong with the constant path; empty if it is a path in normal form.
std::string fault_of_path(std::string_view path) {
  if (!path.starts_with('/')) return "expected a path that begins with \"/\"";
  if (path.find_first_of("?#") != std::string_view::npos)
    return "expected a path without \"?\" and \"#\"; weir forwards the query as it is";
  const auto normal = normal_form(path);
  return normal == path ? "" : "expected a path in normal form: \"" + normal + "\"";
}

}  // namespace

std::string fault_of_prefix(std::string_view prefix) {
  if (auto fault = fault_of_path(prefix); !fault.empty()) return fault;
  if (prefix == "/") return "expected a path such as \"/api\", or remove this key";
  if (!prefix.ends_with('/')) return "";
  return "expected \"" + std::string(prefix.substr(0, prefix.size() - 1)) +
         "\", without the slash at its end";
}

std::string fault_of_expression(std::string_view pattern) {
  if (!is_ascii(pattern)) return "it " + std::string(kNeverInPaths);
  const auto expression = TextMatch::parse_expression(pattern);
  if (expression) return "";
  return "expected a regular expression such as \"^/old/(.*)$\": " + expression.error().message;
}

base::Result<PathPattern> PathPattern::parse(std::string_view pattern, std::string_view to) {
  PathPattern parsed;
  auto expression = TextMatch::parse_expression(pattern);
  if (!expression) return expression.error();
  parsed.pattern_ = std::move(*expression);
  parsed.text_ = to;
  auto split = split_braces(to);
  if (!split) return split.error();
  std::string sample;
  for (auto& [text, name] : *split) {
    auto& piece = parsed.to_.emplace_back(Piece{std::move(text), std::nullopt});
    sample += piece.text;
    if (name.empty()) continue;
    std::size_t group = 0;
    const auto end = std::from_chars(name.data(), name.data() + name.size(), group);
    if (end.ec != std::errc{} || end.ptr != name.data() + name.size() || group >= kMostElements)
      return base::Error{"{" + name + "} is no group; expected {0} for the whole match, or {1} to {9}"};
    if (group > parsed.pattern_.groups())
      return base::Error{"{" + name + "} stands for a group that the pattern does not have; it has " +
                         std::to_string(parsed.pattern_.groups())};
    piece.group = group;
    parsed.elements_ = std::max(parsed.elements_, group + 1);
    sample += "x";
  }
  if (auto fault = fault_of_path(sample); !fault.empty())
    return base::Error{fault + (sample == to ? "" : ", where x stands for a group")};
  return parsed;
}

bool PathPattern::apply(std::string_view path, std::string& out) const {
  std::array<std::string_view, kMostElements> found;
  if (!pattern_.find(path, std::span(found).first(elements_))) return false;
  std::string made;
  for (const auto& [text, group] : to_) {
    made += text;
    if (group) made += found[*group];
  }
  std::string scratch;
  out = http::normalise_path(made, scratch);
  return true;
}

std::string PathPattern::describe() const {
  return pattern_.describe().substr(1) + " to " + text_;
}

bool PathRewrite::apply(std::string_view path, std::string& out) const {
  if (!path.starts_with('/')) return false;  // "OPTIONS *" asks about the whole server
  if (pattern) return pattern->apply(path, out);
  if (!path.starts_with(strip)) return false;
  const auto rest = path.substr(strip.size());
  if (!strip.empty() && !rest.empty() && !rest.starts_with('/')) return false;
  out.assign(add).append(rest.empty() ? "/" : rest);
  return true;
}

}  // namespace weir::policy
