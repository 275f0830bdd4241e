#include "weir/policy/routing/match_index.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weir::policy {

namespace {

// Returns the names of the hosts that the match may hold for, in the form of the names in
// MatchIndex::by_host_.
std::vector<std::string> host_names(const Match& match) {
  std::vector<std::string> names;
  for (const auto& host : match.hosts) {
    auto name = host.describe();
    if (host.is_expression()) return {""};
    names.push_back(host.is_exact() ? std::move(name) : name.substr(1));
  }
  if (names.empty()) return {""};
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<MatchIndex::Position> all_positions(std::size_t count) {
  std::vector<MatchIndex::Position> positions(count);
  std::iota(positions.begin(), positions.end(), MatchIndex::Position{0});
  return positions;
}

}  // namespace

MatchIndex::MatchIndex(std::span<const Match* const> matches)
    : MatchIndex(matches, all_positions(matches.size())) {}

MatchIndex::MatchIndex(std::span<const Match* const> matches, std::vector<Position> positions)
    : all_(std::move(positions)) {
  if (all_.size() <= kFew) return;
  for (const auto position : all_) {
    const auto& match = *matches[position];
    for (const auto& host : host_names(match)) {
      if (host.starts_with('.')) longest_suffix_ = std::max(longest_suffix_, host.size());
      if (match.methods.empty()) add(match, position, host, "");
      for (const auto& method : match.methods) add(match, position, host, method);
    }
  }
  for (auto& [host, methods] : by_host_)
    for (auto& [method, patterns] : methods)
      // The parent of a pattern is the longest other pattern that is a prefix of this pattern. In sorted
      // order, the parent is the pattern before this one, or an ancestor of that pattern.
      for (std::size_t i = 1; i < patterns.size(); ++i) {
        auto& parent = patterns[i].parent = i - 1;
        while (parent != kNone && !patterns[i].text.starts_with(patterns[parent].text))
          parent = patterns[parent].parent;
      }
}

void MatchIndex::add(const Match& match, Position position, const std::string& host,
                     std::string_view method) {
  auto& patterns = by_host_[host][std::string(method)];
  const auto text = match.path ? match.path->literal_start() : std::string_view{};
  const auto before = [](const Pattern& pattern, std::string_view other) { return pattern.text < other; };
  auto at = std::lower_bound(patterns.begin(), patterns.end(), text, before);
  if (at == patterns.end() || at->text != text) at = patterns.insert(at, Pattern{.text = std::string(text)});
  at->matches.push_back(position);
}

// Adds the matches for the host name `host` that have a prefix of `path` as their path pattern.
void MatchIndex::add_host(std::string_view host, std::string_view method, std::string_view path,
                          std::vector<Position>& positions) const {
  const auto methods = by_host_.find(host);
  if (methods == by_host_.end()) return;
  const auto before = [](std::string_view other, const Pattern& pattern) { return other < pattern.text; };
  const auto add_patterns = [&](std::string_view name) {
    const auto found = methods->second.find(name);
    if (found == methods->second.end()) return;
    const auto& patterns = found->second;
    // The longest pattern that is a prefix of the path is the last pattern that sorts before the path, or an
    // ancestor of that pattern. All shorter prefixes of the path are ancestors of the longest one.
    const auto after = std::upper_bound(patterns.begin(), patterns.end(), path, before);
    if (after == patterns.begin()) return;
    auto at = static_cast<std::size_t>(after - patterns.begin()) - 1;
    while (at != kNone && !path.starts_with(patterns[at].text)) at = patterns[at].parent;
    for (; at != kNone; at = patterns[at].parent)
      positions.insert(positions.end(), patterns[at].matches.begin(), patterns[at].matches.end());
  };
  add_patterns("");
  add_patterns(method);
}

// Adds the matches that may hold for the request if its path is `path`.
void MatchIndex::add_path(const Request& request, std::string_view path,
                          std::vector<Position>& positions) const {
  const auto method = request.head->method;
  const auto host = request.host;
  // The target of "OPTIONS *" is not a path, but the patterns "*" and "/*" match it.
  const auto compared = path == "*" ? std::string_view("/") : path;
  add_host("", method, compared, positions);
  if (!host.empty()) add_host(host, method, compared, positions);
  if (longest_suffix_ == 0) return;
  // The position in the host at which the search for suffixes begins. No suffix in the index is longer than
  // longest_suffix_.
  const auto first = host.size() - std::min(host.size(), longest_suffix_);
  for (auto dot = host.find('.', first); dot != std::string_view::npos; dot = host.find('.', dot + 1))
    add_host(host.substr(dot), method, compared, positions);
}

bool MatchIndex::is_searchable(const Request& request) const noexcept {
  return !by_host_.empty() && (request.interpretations == nullptr || !request.interpretations->too_many);
}

void MatchIndex::append(const Request& request, std::vector<Position>& positions) const {
  if (!is_searchable(request)) {
    positions.insert(positions.end(), all_.begin(), all_.end());
    return;
  }
  add_path(request, request.path, positions);
  if (request.interpretations != nullptr)
    for (const auto& other : request.interpretations->others) add_path(request, other, positions);
}

bool MatchIndex::find(const Request& request, std::vector<Position>& positions) const {
  if (!is_searchable(request)) return false;
  positions.clear();
  append(request, positions);
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return true;
}

}  // namespace weir::policy
