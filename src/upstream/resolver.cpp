#include "weir/upstream/resolver.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace weir::upstream {

namespace {

// Returns the addresses as text. Omits the end of a long list.
std::string list(const Addresses& addresses) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t at = 0; at < std::min(kMost, addresses.size()); ++at)
    text += (text.empty() ? "" : ", ") + net::peer_address(addresses[at]).to_string();
  if (addresses.size() > kMost) text += " and " + std::to_string(addresses.size() - kMost) + " more";
  return text;
}

}  // namespace

// One server whose address is a host name.
struct Resolver::Name {
  Name(std::shared_ptr<ServerGroup> of, std::size_t at, const Resolution& first)
      : server_group(std::move(of)), server(at), resolution(first) {}
  std::shared_ptr<ServerGroup> server_group;  // shared with the configuration's snapshots
  std::size_t server;
  Resolution resolution;
  std::optional<net::DnsLookup> lookup;  // the look-up under way
};

Resolver::Resolver(net::asio::io_context& control, const net::Clock& clock, Report report)
    : control_(control), clock_(clock), report_(std::move(report)), timer_(control.get_executor()) {}

Resolver::~Resolver() = default;

void Resolver::watch(const std::vector<std::shared_ptr<ServerGroup>>& server_groups,
                     const net::NameServers& name_servers) {
  name_servers_ = name_servers;
  const auto gone = [&](const Name& name) {
    return std::find(server_groups.begin(), server_groups.end(), name.server_group) == server_groups.end();
  };
  std::erase_if(names_, gone);
  auto before = std::exchange(figures_, {});
  for (const auto& server_group : server_groups) {
    const auto of_it = [&](const Name& name) { return name.server_group == server_group; };
    if (std::none_of(names_.begin(), names_.end(), of_it)) add(server_group);
    if (std::none_of(names_.begin(), names_.end(), of_it)) continue;
    const auto& upstream = server_group->settings().name;
    figures_[upstream] = before.contains(upstream) ? before[upstream] : Figures{.upstream = upstream};
  }
  arm();
}

void Resolver::add(const std::shared_ptr<ServerGroup>& server_group) {
  const auto& settings = server_group->settings();
  const bool once = settings.resolve == base::Duration{0};
  const Resolution::Period period{once ? Resolution::kAfterFailure : settings.resolve_least,
                                  once ? Resolution::kAfterFailure : settings.resolve};
  for (std::size_t at = 0; at < server_group->size(); ++at) {
    if (!net::is_name(server_group->member(at).settings().address)) continue;
    const bool unknown = server_group->member(at).location().addresses->empty();
    if (once && !unknown) continue;
    names_.emplace_back(server_group, at, Resolution(period, clock_.now(), unknown));
  }
}

// Stops watching names that have an address, if the configuration does not ask for repeated look-ups.
void Resolver::drop_known() {
  std::erase_if(names_, [](const Name& name) {
    return name.server_group->settings().resolve == base::Duration{0} &&
           !name.server_group->member(name.server).location().addresses->empty();
  });
}

// Returns the name whose look-up is due next. Returns null if no further look-up may begin now.
Resolver::Name* Resolver::find_next() noexcept {
  Name* next = nullptr;
  std::size_t running = 0;
  for (auto& name : names_) {
    if (name.lookup)
      ++running;
    else if (next == nullptr || name.resolution.due() < next->resolution.due())
      next = &name;
  }
  return running < net::kMostLookups ? next : nullptr;
}

// Sets the timer to the time of the next look-up.
void Resolver::arm() {
  const auto* next = find_next();
  if (next == nullptr) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(clock_.steady(next->resolution.due()));
  timer_.async_wait([this](const net::ErrorCode& ec) {
    if (!ec) ask();
  });
}

void Resolver::ask() {
  for (auto* name = find_next(); name != nullptr && name->resolution.due() <= clock_.now();
       name = find_next())
    name->lookup.emplace(control_, name->server_group->member(name->server).settings().address, name_servers_,
                         [this, name](const base::Result<net::NameAnswer>& answer) { hear(*name, answer); });
  arm();
}

void Resolver::hear(Name& name, const base::Result<net::NameAnswer>& answer) {
  name.lookup.reset();
  note(name, answer);
  drop_known();
  arm();
}

void Resolver::note(Name& name, const base::Result<net::NameAnswer>& answer) {
  using Outcome = Resolution::Outcome;
  const auto now = clock_.now();
  auto& member = name.server_group->member(name.server);
  const auto known = member.location().addresses;
  auto step = name.resolution.take(*known, answer, now, random_());
  auto& figures = figures_[name.server_group->settings().name];
  ++(step.outcome == Outcome::Same      ? figures.same
     : step.outcome == Outcome::Changed ? figures.changed
                                        : figures.failed);
  const auto server = "upstream \"" + name.server_group->settings().name + "\": server " + member.name();
  if (known->empty()) {
    if (step.outcome != Outcome::Changed) return;
    report_(server + " resolves now, to " + list(step.addresses));
    return member.move_to(std::move(step.addresses), now);
  }
  if (step.turned && step.outcome == Outcome::Failed)
    report_(server + " keeps its addresses " + list(*known) + ": " +
            (answer ? "its name has no address" : answer.error().message));
  else if (step.turned)
    report_(server + " resolves again");
  if (step.outcome != Outcome::Changed) return;
  report_(server + " now resolves to " + list(step.addresses) + "; before: " + list(*known));
  member.move_to(std::move(step.addresses), now);
}

std::vector<Resolver::Figures> Resolver::figures() const {
  std::vector<Figures> figures;
  for (const auto& each : figures_) figures.push_back(each.second);
  return figures;
}

}  // namespace weir::upstream
