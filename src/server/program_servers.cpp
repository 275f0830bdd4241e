// Servers of upstreams: their present state, and what operators change about them at run time.
#include "server/program.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace weir::server {

namespace {

using Member = upstream::ServerGroup::Member;

admin::ServerFigures figures_of(const upstream::ServerGroup& server_group, const Member& member) {
  return {.upstream = server_group.settings().name,
          .server = member.name(),
          .healthy = member.serves(),
          .ejections = member.ejections(),
          .drained = member.control()->is_drained(),
          .weight = member.full_weight(),
          .configured_weight = member.settings().weight,
          .in_flight = member.control()->in_flight(),
          .failures = member.failures()};
}

std::string in_quotes(std::string_view text) {
  return '"' + std::string(text) + '"';
}

// Completes an error about an unknown name: returns the text `what`, followed by a list of the known `names`.
std::string unknown(std::string what, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    what += (i == 0 ? "; write " : i + 1 == names.size() ? " or " : ", ") + in_quotes(names[i]);
  return what;
}

// Makes the change. Returns what was changed, as text for the log.
std::string make_change(const admin::ServerChange& change, const Member& member) {
  const auto server = "server " + member.name() + " of upstream " + in_quotes(change.upstream);
  const auto configured = member.settings().weight;
  std::string done;
  if (change.drained) {
    member.control()->set_drained(*change.drained);
    done = (*change.drained ? "drained " : "ended the drain of ") + server;
  }
  if (change.weight) {
    member.control()->set_weight(configured, *change.weight);
    done += (done.empty() ? "" : ", and ") + ("set the weight of " + server + " to ") +
            std::to_string(*change.weight) + " (configured: " + std::to_string(configured) + ")";
  }
  return done;
}

constexpr std::string_view kServerLine = "server";
constexpr char kBetween = '\t';

// Removes the number at the beginning of `text` and the tab after it, and returns the number. Returns
// nullopt, and removes nothing, if `text` begins otherwise.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop == end || *stop != kBetween) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()) + 1);
  return number;
}

}  // namespace

std::vector<admin::ServerFigures> Program::servers() const {
  std::vector<admin::ServerFigures> figures;
  for (const auto& server_group : config_snapshots_.current().server_groups)
    for (std::size_t at = 0; at < server_group->size(); ++at)
      figures.push_back(figures_of(*server_group, server_group->member(at)));
  return figures;
}

base::Result<admin::ServerFigures> Program::change_server(const admin::ServerChange& change) {
  std::vector<std::string> names;
  for (const auto& server_group : config_snapshots_.current().server_groups) {
    names.push_back(server_group->settings().name);
    if (names.back() != change.upstream) continue;
    const auto* const member = server_group->find(change.server);
    if (member == nullptr) {
      std::vector<std::string> servers;
      for (const auto& server : server_group->servers()) servers.push_back(server.name);
      return base::Error{unknown(
          "upstream " + in_quotes(change.upstream) + " has no server " + in_quotes(change.server), servers)};
    }
    log_.audit("admin: " + change.peer + " " + make_change(change, *member));
    if (server_group->is_drained())
      log_.warning("upstream " + in_quotes(change.upstream) +
                   ": all servers are drained; requests get 503 until one is undrained");
    server_group->queue().freed();
    return figures_of(*server_group, *member);
  }
  return base::Error{unknown("there is no upstream " + in_quotes(change.upstream), names)};
}

// Returns a line for each server that an operator changed, for the process that takes over. Tabs separate the
// parts of a line: the word "server"; 1 if the server is drained, otherwise 0; the configured weight; the
// present weight; the upstream; the server.
std::vector<std::string> Program::changed_servers() const {
  std::vector<std::string> lines;
  for (const auto& each : servers()) {
    if (!each.drained && each.weight == each.configured_weight) continue;
    std::string line(kServerLine);
    for (const auto& part : {std::to_string(each.drained ? 1 : 0), std::to_string(each.configured_weight),
                             std::to_string(each.weight), each.upstream, each.server})
      (line += kBetween) += part;
    lines.push_back(std::move(line));
  }
  return lines;
}

// Makes a change that an operator made in the old process of an upgrade. `line`: a line of changed_servers().
// Returns false if the line does not begin with the word "server". Ignores incomplete lines, and servers that
// the configuration no longer lists.
bool Program::change_server_again(std::string_view line) {
  if (!line.starts_with(kServerLine)) return false;
  line.remove_prefix(std::min(kServerLine.size() + 1, line.size()));
  const auto drained = take_number(line), configured = take_number(line), weight = take_number(line);
  const auto end = line.find(kBetween);
  if (!drained || !configured || !weight || end == std::string_view::npos) return true;
  for (const auto& server_group : config_snapshots_.current().server_groups) {
    if (server_group->settings().name != line.substr(0, end)) continue;
    const auto* const member = server_group->find(line.substr(end + 1));
    if (member == nullptr) continue;
    member->control()->set_drained(*drained != 0);
    if (*weight != *configured) member->control()->set_weight(*configured, *weight);
  }
  return true;
}

}  // namespace weir::server
