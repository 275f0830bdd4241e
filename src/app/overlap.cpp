#include "app/overlap.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::app {

namespace {

bool is_exact(std::string_view path) {
  return !path.starts_with('~') && !path.ends_with('*');
}

// The paths as written, or empty where there is none or a regular expression, of which nothing is known.
std::string plain_path(const policy::Match& match) {
  if (!match.path) return {};
  auto text = match.path->describe();
  return text.starts_with('/') ? text : std::string();
}

bool paths_disjoint(const policy::Match& a, const policy::Match& b) {
  const auto left = plain_path(a);
  const auto right = plain_path(b);
  if (!left.empty() && is_exact(left) && b.path) return !b.path->holds(left);
  if (!right.empty() && is_exact(right) && a.path) return !a.path->holds(right);
  if (left.empty() || right.empty()) return false;
  const auto l = std::string_view(left).substr(0, left.size() - 1);
  const auto r = std::string_view(right).substr(0, right.size() - 1);
  return !l.starts_with(r) && !r.starts_with(l);
}

}  // namespace

bool plainly_disjoint(const policy::Match& a, const policy::Match& b) {
  if (a.host && b.host && *a.host != *b.host) return true;
  const auto in_b = [&](const std::string& method) {
    return std::find(b.methods.begin(), b.methods.end(), method) != b.methods.end();
  };
  if (!a.methods.empty() && !b.methods.empty() && std::none_of(a.methods.begin(), a.methods.end(), in_b))
    return true;
  return paths_disjoint(a, b);
}

}  // namespace weir::app
