#include "cli/import/write/host_order.hpp"

#include "weir/policy/routing/patterns.hpp"

#include <algorithm>
#include <utility>

namespace weir::cli::nginx {

namespace {

// One or more names of one server, and the same names as compiled patterns.
struct Draft {
  HostUnit unit;
  HostName::Kind kind;
  std::vector<policy::HostMatch> patterns;
};

bool is_apart(const Draft& a, const Draft& b) {
  return std::all_of(a.patterns.begin(), a.patterns.end(), [&](const policy::HostMatch& one) {
    return std::all_of(b.patterns.begin(), b.patterns.end(),
                       [&](const policy::HostMatch& other) { return one.is_disjoint(other); });
  });
}

// Returns true if the draft at `from` may move to just before `to`: each host must still get the same server.
// So each draft in between must have the same server, or match no host of the moved draft.
bool may_move(const std::vector<Draft>& drafts, std::size_t from, std::size_t to) {
  for (auto at = from + 1; at < to; ++at)
    if (drafts[at].unit.server != drafts[from].unit.server && !is_apart(drafts[from], drafts[at]))
      return false;
  return true;
}

std::vector<Draft> drafts_of(const std::vector<Server>& servers, const std::vector<std::size_t>& members) {
  std::vector<Draft> drafts;
  for (const auto member : members)
    for (const auto& name : servers[member].names)
      if (auto match = policy::HostMatch::parse(name.pattern))
        drafts.push_back({{member, {name.pattern}}, name.kind, {std::move(*match)}});
  const auto rank = [](const Draft& draft) {
    const bool wildcard = draft.kind == HostName::Kind::Leading || draft.kind == HostName::Kind::Trailing;
    return std::pair(draft.kind, wildcard ? -static_cast<long>(draft.unit.names.front().size()) : 0);
  };
  std::stable_sort(drafts.begin(), drafts.end(),
                   [&](const Draft& a, const Draft& b) { return rank(a) < rank(b); });
  return drafts;
}

// Joins drafts of the same server, unless a host would then get another server.
void join(std::vector<Draft>& drafts) {
  for (std::size_t at = drafts.size(); at-- > 0;) {
    auto next = at + 1;
    while (next < drafts.size() && drafts[next].unit.server != drafts[at].unit.server) ++next;
    if (next == drafts.size() || !may_move(drafts, at, next)) continue;
    auto& into = drafts[next];
    auto& from = drafts[at];
    into.unit.names.insert(into.unit.names.begin(), from.unit.names.begin(), from.unit.names.end());
    into.patterns.insert(into.patterns.end(), from.patterns.begin(), from.patterns.end());
    drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

}  // namespace

std::vector<HostUnit> order_hosts(const std::vector<Server>& servers, const std::vector<std::size_t>& members,
                                  std::size_t default_server) {
  auto drafts = drafts_of(servers, members);
  join(drafts);
  // Removes the default server's drafts, because the last unit (below) serves their hosts, too. Keeps a draft
  // if one of its hosts would then get another server.
  for (std::size_t at = drafts.size(); at-- > 0;)
    if (drafts[at].unit.server == default_server && may_move(drafts, at, drafts.size()))
      drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(at));
  std::vector<HostUnit> units;
  units.reserve(drafts.size() + 1);
  for (auto& draft : drafts) units.push_back(std::move(draft.unit));
  units.push_back({default_server, {}});
  return units;
}

}  // namespace weir::cli::nginx
