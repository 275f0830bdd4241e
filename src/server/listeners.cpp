#include "server/listeners.hpp"

#include "weir/acme/folder.hpp"
#include "weir/config/locations.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <unistd.h>

namespace weir::server {

namespace {

// Returns the configured address. If its port is 0, replaces 0 by the port that the system chose.
std::string name_with_port(base::Endpoint address, const net::ListeningSocket& socket) {
  if (!address.is_unix()) address.port = socket.bound().port;
  return address.to_string();
}

// Returns the addresses of the sockets, without repetitions.
std::vector<std::string> addresses_of(const std::vector<net::ListeningSocket>& sockets) {
  std::vector<std::string> addresses;
  for (const auto& socket : sockets) {
    auto address = socket.bound().to_string();
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
      addresses.push_back(std::move(address));
  }
  return addresses;
}

std::shared_ptr<const proxy::Http2Settings> http2_of(const net::ListenerSettings& listener) {
  const auto& options = listener.http2;
  proxy::Http2Settings settings;
  settings.limits.max_streams = options.max_streams;
  settings.limits.stream_window = options.stream_window;
  settings.limits.connection_window = options.connection_window;
  settings.resets = {.count = options.resets, .window = options.resets_within};
  settings.ping = options.ping;
  settings.only = !listener.protocols.http1;
  settings.prior_knowledge = listener.protocols.h2c;
  return std::make_shared<const proxy::Http2Settings>(settings);
}

// Returns the settings for a listener that answers questions; null for a listener that forwards requests.
// `open_permits`: counts the permits of the listener.
std::shared_ptr<const proxy::AskSettings> ask_of(const net::ListenerSettings& listener,
                                                 const std::shared_ptr<proxy::PermitCount>& open_permits) {
  using Api = proxy::AskSettings::Api;
  if (listener.serves == net::Serves::Proxy) return nullptr;
  const auto& options = listener.ask;
  return std::make_shared<const proxy::AskSettings>(
      proxy::AskSettings{.api = listener.serves == net::Serves::Decide ? Api::Decide : Api::Rls,
                         .token = options.token,
                         .permit_ttl = options.permit_ttl,
                         .max_permits = options.max_permits,
                         .open_permits = open_permits,
                         .together = options.together});
}

// Makes a placeholder for each certificate that weir orders and does not have yet, so that the listener can
// begin. Keeps a file that a listener can use, even if its certificate has expired or is for other names.
// weir replaces such a file soon.
base::Result<void> make_placeholders(const net::ListenerSettings& listener) {
  if (!listener.tls) return {};
  for (const auto& files : listener.tls->certificates) {
    if (files.names.empty()) continue;
    const acme::Folder folder(std::filesystem::path(files.cert).parent_path().string());
    if (auto made = folder.make(); !made) return made;
    if (auto made = folder.keep_placeholder(files.names); !made) return made;
  }
  return {};
}

}  // namespace

Listeners::Listeners(net::Executor executor, const Workers& workers, log::Log& log,
                     std::shared_ptr<const net::Challenges> challenges)
    : workers_(workers),
      log_(log),
      certificates_(
          executor, log,
          [this](std::size_t number, SSL_CTX*) {
            for (const auto& listener : listeners_)
              if (listener.number == number)
                for (const auto& worker : workers_) worker->renew(number, acceptor(listener));
          },
          std::move(challenges)) {}

base::Result<std::vector<net::ListeningSocket>> Listeners::open(const base::Endpoint& address) const {
  std::vector<net::ListeningSocket> sockets;
  if (inherited_sockets_) sockets = inherited_sockets_(address);
  // If there are fewer inherited sockets than workers, several workers share a socket. A new socket would
  // receive connections at once. If this process then failed to start, these connections would be lost.
  if (const auto inherited = sockets.size(); inherited != 0) {
    while (sockets.size() < workers_.size()) {
      auto another = sockets[sockets.size() % inherited].share();
      if (!another) return another.error();
      sockets.push_back(std::move(*another));
    }
    return sockets;
  }
  auto opened = net::ListeningSocket::open_all(address);
  if (!opened) return opened.error();
  // Opens sockets at the first address, one for each worker, then at the next address, and so on. begin()
  // gives socket i to worker i modulo the number of workers.
  for (auto& first : *opened) {
    const auto at = sockets.size();
    sockets.push_back(std::move(first));
    while (sockets.size() < at + workers_.size()) {
      auto another = sockets[at].again();
      if (!another) return another.error();
      sockets.push_back(std::move(*another));
    }
  }
  return sockets;
}

base::Result<std::vector<Listeners::Wanted>> Listeners::prepare(const config::Settings& settings) const {
  std::vector<Wanted> wanted;
  std::vector<bool> kept(listeners_.size());
  for (const auto& each : settings.listeners) {
    auto& one = wanted.emplace_back();
    one.settings = each;
    for (std::size_t i = 0; i < listeners_.size() && !one.number; ++i) {
      if (kept[i] || !(listeners_[i].settings.address == each.address)) continue;
      kept[i] = true;
      one.number = listeners_[i].number;
      one.changed = !(listeners_[i].settings == each);
    }
    if (const auto prepared = prepare(one); !prepared)
      return config::with_location(settings.locations, config::name_of(each), prepared.error());
  }
  return wanted;
}

base::Result<void> Listeners::prepare(Wanted& wanted) const {
  if (wanted.changed) {
    if (const auto made = make_placeholders(wanted.settings); !made) return made.error();
    auto shown = certificates_.read(wanted.settings, wanted.number);
    if (!shown) return shown.error();
    wanted.shown = std::move(*shown);
  }
  if (wanted.number) return {};
  auto sockets = open(wanted.settings.address);
  if (!sockets) return sockets.error();
  wanted.sockets = std::move(*sockets);
  for (const auto& socket : wanted.sockets) {
    auto copy = socket.share();
    if (!copy) return copy.error();
    wanted.copies.push_back(std::move(*copy));
  }
  return {};
}

std::vector<std::string> Listeners::activate(std::vector<Wanted> wanted, std::size_t most_sessions) {
  std::vector<std::string> changes;
  const bool other_bound = std::exchange(most_sessions_, most_sessions) != most_sessions;
  auto before = std::exchange(listeners_, {});
  for (auto& one : wanted) {
    const bool is_new = !one.number;
    const auto where = "listener " + one.settings.address.to_string();
    auto& listener =
        listeners_.emplace_back(Listener{is_new ? next_++ : *one.number, std::move(one.settings)});
    if (one.changed) certificates_.show(listener.number, listener.settings, std::move(one.shown));
    if (is_new) {
      listener.sockets = std::move(one.copies);
      listener.name = name_with_port(listener.settings.address, listener.sockets.front());
      begin(listener, std::move(one.sockets));
    } else {
      const auto old = std::find_if(before.begin(), before.end(),
                                    [&](const Listener& each) { return each.number == listener.number; });
      listener.sockets = std::move(old->sockets);
      // acceptor() below uses the name and the permits, so they must be set first
      listener.name = std::move(old->name);
      listener.open_permits = std::move(old->open_permits);
      before.erase(old);
      if (one.changed || other_bound)
        for (const auto& worker : workers_) worker->renew(listener.number, acceptor(listener));
    }
    if (one.changed) changes.push_back(where + (is_new ? " added" : " changed"));
  }
  for (const auto& listener : before) {
    leave(listener);
    changes.push_back("listener " + listener.settings.address.to_string() + " removed");
  }
  return changes;
}

proxy::AcceptorSettings Listeners::acceptor(const Listener& listener) const {
  return {net::share(certificates_.context(listener.number)),
          listener.settings.proxy_protocol,
          listener.name,
          listener.settings.name,
          most_sessions_,
          http2_of(listener.settings),
          ask_of(listener.settings, listener.open_permits)};
}

// Distributes the sockets among the workers. Each socket gets a worker, even if there are more sockets than
// workers. Otherwise the clients of a socket without a worker would wait forever.
void Listeners::begin(Listener& listener, std::vector<net::ListeningSocket> sockets) {
  const std::string what = std::string(listener.settings.tls ? "TLS " : "") + "listening on ";
  for (const auto& where : addresses_of(sockets))
    log_.info(what + where + (where == listener.name ? "" : ", an address of " + listener.name));
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    workers_[i % workers_.size()]->listen_on(listener.number, std::move(sockets[i]), acceptor(listener));
  }
}

std::vector<std::pair<std::string, std::vector<int>>> Listeners::sockets() const {
  std::vector<std::pair<std::string, std::vector<int>>> all;
  for (const auto& listener : listeners_) {
    auto& [address, sockets] = all.emplace_back(listener.settings.address.to_string(), std::vector<int>());
    for (const auto& socket : listener.sockets) sockets.push_back(socket.native_handle());
  }
  return all;
}

void Listeners::adopt(upgrade::ReceivedConnection arrived) {
  const auto found = std::find_if(listeners_.begin(), listeners_.end(),
                                  [&](const Listener& each) { return each.name == arrived.listener; });
  arrived.connection_info.last = found == listeners_.end();
  const auto& listener = arrived.connection_info.last ? listeners_.front() : *found;
  workers_[adopter_++ % workers_.size()]->adopt(listener.number, std::move(arrived));
}

void Listeners::close() {
  for (auto& listener : listeners_) listener.sockets.clear();
}

// Removes the files of unix sockets while the sockets are still open. Once the sockets are closed, another
// process may own the files.
void Listeners::end() {
  for (const auto& listener : listeners_) remove_file(listener);
  close();
}

void Listeners::remove_file(const Listener& listener) const {
  const auto& address = listener.settings.address;
  if (address.is_unix() && !(is_lent_ && is_lent_(address))) ::unlink(address.unix_path.c_str());
}

void Listeners::leave(const Listener& listener) {
  const auto& address = listener.settings.address;
  remove_file(listener);
  for (const auto& worker : workers_) worker->leave(listener.number);
  certificates_.forget(listener.number);
  log_.info("no longer listening on " + address.to_string());
}

}  // namespace weir::server
