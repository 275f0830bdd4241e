#include "weir/observe/client_surges.hpp"

#include <algorithm>
#include <utility>

namespace weir::observe {

ClientSurges::Client* ClientSurges::find(const base::Digest128& client) noexcept {
  const auto found = std::find_if(clients_.begin(), clients_.end(),
                                  [&](const Client& each) { return each.name.digest == client; });
  return found == clients_.end() ? nullptr : &*found;
}

// Returns an entry for a new client. If the table is full, the new client replaces the client with the fewest
// refusals among those whose surge does not fire. Returns null if the surges of all clients in the table
// fire.
ClientSurges::Client* ClientSurges::replace_client() {
  const auto weight = [](const Client& client) {
    return client.inherited + client.surge.seen() + client.fresh;
  };
  std::uint64_t inherited = 0;
  if (clients_.size() >= kWatched) {
    ++dropped_.replaced;
    const auto rank = [&](const Client& client) { return std::pair(client.surge.firing(), weight(client)); };
    const auto fewest =
        std::min_element(clients_.begin(), clients_.end(),
                         [&](const Client& one, const Client& other) { return rank(one) < rank(other); });
    if (fewest->surge.firing()) return nullptr;
    inherited = weight(*fewest);
    clients_.erase(fewest);
  }
  clients_.push_back({.name = {}, .surge = Surge(settings_), .inherited = inherited});
  return &clients_.back();
}

void ClientSurges::add(const base::Digest128& client, std::string_view text, std::uint64_t refusals) {
  if (refusals == 0) return;
  auto* known = find(client);
  if (known == nullptr) {
    known = replace_client();
    if (known == nullptr) return;
    known->name = {client, std::string(text)};
    (void)known->surge.note(0, updated_);  // the surge counts only the refusals after this call
  }
  known->total += refusals;
  known->fresh += refusals;
}

std::vector<ClientSurges::Event> ClientSurges::update(base::TimePoint now, std::size_t places) {
  using Change = Surge::Change;
  std::vector<Event> events;
  for (auto& client : clients_) {
    auto change = client.surge.note(client.total, now);
    client.fresh = 0;
    if (!client.reported) {
      const bool begins = client.surge.firing() && places > 0;
      if (change == Change::Began && !begins) ++dropped_.unreported;
      if (begins) --places;
      client.reported = begins;
      change = begins ? Change::Began : Change::None;
    } else if (change == Change::Ended) {
      client.reported = false;
    }
    if (change != Change::None) events.push_back({client, change});
  }
  std::erase_if(clients_, [](const Client& each) { return !each.surge.firing() && each.surge.seen() == 0; });
  updated_ = now;
  return events;
}

void ClientSurges::go_on(const NamedClient& client, base::TimePoint since, std::uint64_t seen,
                         base::TimePoint now) {
  auto& known = clients_.emplace_back(Client{.name = client, .surge = Surge(settings_), .reported = true});
  (void)known.surge.note(0, now);
  known.surge.go_on(true, since, seen, now);
}

ClientSurges::Dropped ClientSurges::take_dropped() noexcept {
  return std::exchange(dropped_, {});
}

}  // namespace weir::observe
