#include "weir/policy/routing/path_rewrite.hpp"

#include "policy/routing/braces.hpp"

#include "weir/http/path_interpretations.hpp"
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

// Returns true if weir removes a dot segment from the path when it normalises the path.
bool has_dot_segment(std::string_view path) {
  const auto spelt = http::path_spelling(path);
  for (std::string_view rest = spelt; !rest.empty();) {
    const auto segment = rest.substr(0, rest.find('/', 1));  // the segment, with the slash before it
    const auto name = segment.substr(0, segment.find(';'));
    if (name == "/." || name == "/..") return true;
    rest.remove_prefix(segment.size());
  }
  return false;
}

// Returns true if a server may read `path` as a path that begins neither with `beginning` nor with another
// reading of `beginning`. `path`: a path in normal form.
bool may_leave(std::string_view path, std::string_view beginning) {
  http::PathInterpretations paths, beginnings;
  if (beginning.empty() || !http::find_path_interpretations(path, path, paths)) return false;
  std::string fence(beginning);
  const auto rest = path.substr(std::min(fence.size(), path.size()));
  if (!fence.ends_with('/') && rest.starts_with('/')) fence += '/';
  if (fence == "/") return false;
  (void)http::find_path_interpretations(fence, fence, beginnings);
  if (paths.too_many) return true;
  return std::any_of(paths.others.begin(), paths.others.end(), [&](const std::string& other) {
    return !other.starts_with(fence) &&
           std::none_of(beginnings.others.begin(), beginnings.others.end(),
                        [&](const std::string& known) { return other.starts_with(known); });
  });
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
  out.clear();
  for (const auto& [text, group] : to_) {
    out += text;
    if (group) out += found[*group];
  }
  return true;
}

bool PathPattern::may_make_dots(std::string_view path) const noexcept {
  return path.find_first_of("%.") != std::string_view::npos || text_.find('.') != std::string::npos;
}

std::string PathPattern::describe() const {
  return pattern_.describe().substr(1) + " to " + text_;
}

// Stores the new path in `out`. Returns false if the rewrite does not apply to `path`. A path that `pattern`
// has made is not yet in normal form; any other new path is already in normal form.
bool PathRewrite::make(std::string_view path, std::string& out) const {
  if (!path.starts_with('/')) return false;  // "OPTIONS *" asks about the whole server
  if (pattern) return pattern->apply(path, out);
  if (!path.starts_with(strip)) return false;
  const auto rest = path.substr(strip.size());
  if (!strip.empty() && !rest.empty() && !rest.starts_with('/')) return false;
  out.assign(add).append(rest.empty() ? "/" : rest);
  return true;
}

bool PathRewrite::apply(std::string_view path, std::string& out) const {
  if (!pattern) return make(path, out);
  std::string made, scratch;
  if (!make(path, made)) return false;
  out = http::normalise_path(made, scratch);
  return true;
}

bool PathRewrite::leaves_target(std::string_view path, bool all_servers) const {
  const bool doubtful = pattern ? pattern->may_make_dots(path) : path.find('%') != std::string_view::npos;
  std::string made, scratch;
  if (!doubtful || !make(path, made)) return false;
  if (has_dot_segment(made)) return true;
  const auto beginning = pattern ? pattern->beginning() : std::string_view(add);
  return all_servers && may_leave(http::normalise_path(made, scratch), beginning);
}

}  // namespace weir::policy
