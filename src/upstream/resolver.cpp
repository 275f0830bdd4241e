#include "weir/upstream/resolver.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace weir::upstream {

namespace {

// Returns the texts of the elements. Omits the end of a long list.
template <class Elements, class Text>
std::string list(const Elements& elements, Text text_of) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t at = 0; at < std::min(kMost, elements.size()); ++at)
    text += (text.empty() ? "" : ", ") + text_of(elements[at]);
  if (elements.size() > kMost) text += " and " + std::to_string(elements.size() - kMost) + " more";
  return text;
}

std::string list(const Addresses& addresses) {
  return list(addresses, [](const auto& address) { return net::peer_address(address).to_string(); });
}

std::string list(const std::vector<ServerSettings>& servers) {
  return list(servers, [](const ServerSettings& server) {
    return server.name() + " (priority " + std::to_string(server.priority) + ", weight " +
           std::to_string(server.weight) + ")";
  });
}

}  // namespace

// One name to look up: the host name of a server, or the service of an upstream.
struct Resolver::Name {
  Name(std::shared_ptr<ServerGroup> of, std::size_t at, bool service, const Resolution& first)
      : server_group(std::move(of)), server(at), is_service(service), resolution(first) {}
  [[nodiscard]] bool is_running() const noexcept { return lookup || service_lookup; }
  // Returns true if the name has had an answer, so that the upstream can use it.
  [[nodiscard]] bool is_known() const {
    return is_service ? !server_group->member(0).settings().is_service
                      : !server_group->member(server).location().addresses->empty();
  }
  std::shared_ptr<ServerGroup> server_group;  // shared with the configuration's snapshots
  std::size_t server;                         // 0 for a service
  bool is_service;
  Resolution resolution;
  std::optional<net::DnsLookup> lookup;  // the look-up under way
  std::optional<net::ServiceLookup> service_lookup;
  std::string reported{};  // the last log line about new servers of a service
};

Resolver::Resolver(net::asio::io_context& control, const net::Clock& clock, Report report, Change change)
    : control_(control),
      clock_(clock),
      report_(std::move(report)),
      change_(std::move(change)),
      timer_(control.get_executor()) {}

Resolver::~Resolver() = default;

void Resolver::watch(const std::vector<std::shared_ptr<ServerGroup>>& server_groups,
                     const net::NameServers& name_servers) {
  name_servers_ = name_servers;
  follow_services(server_groups);
  const auto gone = [&](const Name& name) {
    return std::find(server_groups.begin(), server_groups.end(), name.server_group) == server_groups.end();
  };
  std::erase_if(names_, gone);
  auto before = std::exchange(figures_, {});
  for (const auto& server_group : server_groups) {
    const auto of_it = [&](const Name& name) { return name.server_group == server_group; };
    const auto server_of_it = [&](const Name& name) { return of_it(name) && !name.is_service; };
    if (std::none_of(names_.begin(), names_.end(), server_of_it)) add(server_group);
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
  const auto of_it = [&](const Name& name) { return name.server_group == server_group; };
  const bool is_followed = std::any_of(names_.begin(), names_.end(), of_it);
  const auto begin = [&](std::size_t at, bool is_service) {
    Name name(server_group, at, is_service, Resolution(period, clock_.now(), false));
    const bool known = name.is_known();
    if (once && known) return;
    names_.emplace_back(server_group, at, is_service, Resolution(period, clock_.now(), !known));
  };
  if (settings.service && !is_followed) begin(0, true);
  for (std::size_t at = 0; at < server_group->size(); ++at) {
    const auto& server = server_group->member(at).settings();
    if (!server.is_service && net::is_name(server.address)) begin(at, false);
  }
}

// Lets the look-up of a service continue after a reload. `server_groups`: the groups of the new
// configuration. The look-up continues for the new group of the same upstream if the service and the periods
// are the same.
void Resolver::follow_services(const std::vector<std::shared_ptr<ServerGroup>>& server_groups) {
  for (auto& name : names_) {
    if (!name.is_service) continue;
    const auto& settings = name.server_group->settings();
    for (const auto& next : server_groups)
      if (next->settings().name == settings.name && next->settings().service == settings.service &&
          next->settings().resolve == settings.resolve &&
          next->settings().resolve_least == settings.resolve_least) {
        name.server_group = next;
        break;
      }
  }
}

// Stops watching names that have an address, if the configuration does not ask for repeated look-ups.
void Resolver::drop_known() {
  std::erase_if(names_, [](const Name& name) {
    return name.server_group->settings().resolve == base::Duration{0} && name.is_known();
  });
}

// Returns the name whose look-up is due next. Returns null if no further look-up may begin now.
Resolver::Name* Resolver::find_next() noexcept {
  Name* next = nullptr;
  std::size_t running = 0;
  for (auto& name : names_) {
    if (name.is_running())
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
       name = find_next()) {
    if (name->is_service) {
      name->service_lookup.emplace(
          control_, name->server_group->settings().service->address.host, name_servers_, choose_records,
          [this, name](const base::Result<net::ServiceAnswer>& answer) { handle_services(*name, answer); });
      continue;
    }
    name->lookup.emplace(
        control_, name->server_group->member(name->server).settings().address, name_servers_,
        [this, name](const base::Result<net::NameAnswer>& answer) { handle_addresses(*name, answer); });
  }
  arm();
}

void Resolver::handle_addresses(Name& name, const base::Result<net::NameAnswer>& answer) {
  name.lookup.reset();
  note(name, answer);
  drop_known();
  arm();
}

// Records an answer about a service, reports changes, and calls `change_` after the last use of `name`:
// `change_` may call watch(), which may drop `name`.
void Resolver::handle_services(Name& name, const base::Result<net::ServiceAnswer>& answer) {
  using Outcome = Resolution::Outcome;
  name.service_lookup.reset();
  const auto server_group = name.server_group;
  const auto& settings = server_group->settings();
  const bool known = name.is_known();
  const bool turned = name.resolution.note(!answer, answer ? std::optional(answer->ttl) : std::nullopt,
                                           clock_.now(), random_());
  ResolvedUpstream next{settings, {}};
  if (answer)
    next = {with_targets(settings, answer->targets), servers_of(answer->targets, server_group.get())};
  const bool changed = next.settings != settings;
  count(*server_group, !answer ? Outcome::Failed : changed ? Outcome::Changed : Outcome::Same);
  const auto service = "upstream \"" + settings.name + "\": " + settings.service->name();
  if (known && turned)
    report_(service + (answer
                           ? " resolves again"
                           : " keeps its servers " + list(settings.servers) + ": " + answer.error().message));
  auto line = service + (known ? " now has the servers " : " resolves now, to the servers ") +
              list(next.settings.servers) + (known ? "; before: " + list(settings.servers) : "");
  // Logs a change only once. If weir does not use the new servers, for example because it drains, each
  // further answer shows the same change again.
  if (changed && line != name.reported) report_(name.reported = std::move(line));
  if (changed && change_) change_(next);
  drop_known();
  arm();
}

void Resolver::count(const ServerGroup& server_group, Resolution::Outcome outcome) {
  using Outcome = Resolution::Outcome;
  auto& figures = figures_[server_group.settings().name];
  ++(outcome == Outcome::Same      ? figures.same
     : outcome == Outcome::Changed ? figures.changed
                                   : figures.failed);
}

void Resolver::note(Name& name, const base::Result<net::NameAnswer>& answer) {
  using Outcome = Resolution::Outcome;
  const auto now = clock_.now();
  auto& member = name.server_group->member(name.server);
  const auto known = member.location().addresses;
  auto step = name.resolution.take(*known, answer, now, random_());
  count(*name.server_group, step.outcome);
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
