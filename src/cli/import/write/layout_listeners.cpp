#include "cli/import/write/layout_listeners.hpp"

#include "cli/import/syntax/nginx_values.hpp"

#include <algorithm>
#include <utility>

namespace weir::cli::nginx {

namespace {

// An address with the servers that listen on it.
struct Socket {
  WeirListener listener;
  std::vector<std::size_t> members;
  std::size_t default_server = 0;
  bool has_default = false;
};

std::string port_of(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

void add_certificates(const Tls& from, Tls& into) {
  for (const auto& certificate : from.certificates)
    if (std::find(into.certificates.begin(), into.certificates.end(), certificate) == into.certificates.end())
      into.certificates.push_back(certificate);
}

void add_listen(const Listen& listen, const std::string& address, std::size_t server,
                std::vector<Socket>& sockets) {
  auto found = std::find_if(sockets.begin(), sockets.end(),
                            [&](const Socket& socket) { return socket.listener.listen.address == address; });
  if (found == sockets.end()) {
    sockets.push_back({});
    found = sockets.end() - 1;
    found->listener.listen = {.position = listen.position, .address = address, .ipv6_only = listen.ipv6_only};
    found->default_server = server;
  }
  auto& whole = found->listener.listen;
  whole.tls |= listen.tls;
  whole.http2 |= listen.http2;
  whole.proxy_protocol |= listen.proxy_protocol;
  whole.ipv6_only &= listen.ipv6_only;
  if (std::find(found->members.begin(), found->members.end(), server) == found->members.end())
    found->members.push_back(server);
  if (listen.is_default && !std::exchange(found->has_default, true)) found->default_server = server;
}

std::vector<Socket> sockets_of(const Configuration& configuration) {
  std::vector<Socket> sockets;
  for (std::size_t i = 0; i < configuration.servers.size(); ++i)
    for (const auto& listen : configuration.servers[i].listens)
      add_listen(listen, listen.address, i, sockets);
  return sockets;
}

bool serve_alike(const Socket& a, const Socket& b) {
  const auto& one = a.listener.listen;
  const auto& other = b.listener.listen;
  return a.members == b.members && a.default_server == b.default_server && one.tls == other.tls &&
         one.proxy_protocol == other.proxy_protocol;
}

// Joins the sockets 0.0.0.0 and [::] of a port, because weir's [::] also accepts IPv4. If the two sockets
// have different servers or settings, leaves out [::]. Otherwise a client could reach a server that nginx
// would not let it reach.
void join_families(std::vector<Socket>& sockets, Notes& notes) {
  for (std::size_t at = sockets.size(); at-- > 0;) {
    const auto wide = sockets[at].listener.listen;
    if (!wide.address.starts_with("[::]:")) continue;
    const auto narrow = std::find_if(sockets.begin(), sockets.end(), [&](const Socket& socket) {
      return socket.listener.listen.address == "0.0.0.0:" + port_of(wide.address);
    });
    if (narrow == sockets.end()) continue;
    auto& whole = narrow->listener.listen;
    if (serve_alike(*narrow, sockets[at])) {
      whole.address = wide.address;
      whole.ipv6_only = false;
      whole.http2 |= wide.http2;
    } else {
      notes.add(wide.position, "listen",
                wide.address + " is left out: it has other servers or settings than " + whole.address +
                    ", and weir's [::] also takes IPv4");
    }
    sockets.erase(sockets.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

// Returns the file with the authorities for client certificates: ssl_client_certificate, or without it
// ssl_trusted_certificate.
const std::string& client_ca_of(const Tls& tls) {
  return tls.client_ca.empty() ? tls.trusted_ca : tls.client_ca;
}

bool is_stricter(const std::string& auth, const std::string& other) {
  const auto rank = [](const std::string& text) { return text == "require" ? 2 : text.empty() ? 0 : 1; };
  return rank(auth) > rank(other);
}

// Sets the strictest client_auth of all servers of a socket, because a listener of weir has only one value.
//
// Returns why weir must leave the listener out; empty if weir can use it. For example, the servers may trust
// different authorities. One authority for all of them would accept clients that nginx refuses.
std::string set_client_auth(const Configuration& configuration, Socket& socket, Notes& notes) {
  auto& tls = socket.listener.tls;
  const auto& listen = socket.listener.listen;
  const Tls* strictest = nullptr;
  bool differs = false;
  for (const auto member : socket.members) {
    const auto& other = configuration.servers[member].tls;
    differs = differs || other.client_auth != configuration.servers[socket.members.front()].tls.client_auth;
    if (other.client_auth.empty()) continue;
    if (client_ca_of(other).empty())
      return listen.address + " has ssl_verify_client and no ssl_client_certificate";
    if (!other.client_ca.empty() && !other.trusted_ca.empty() && other.client_ca != other.trusted_ca)
      notes.add(listen.position, "listen",
                "nginx also trusts clients of " + other.trusted_ca + "; weir: one file of both as client_ca");
    if (strictest != nullptr &&
        (client_ca_of(*strictest) != client_ca_of(other) || strictest->client_crl != other.client_crl))
      return "the servers of " + listen.address + " have different authorities or lists for clients";
    if (strictest == nullptr || is_stricter(other.client_auth, strictest->client_auth)) strictest = &other;
  }
  if (strictest == nullptr) return {};
  tls.client_ca = client_ca_of(*strictest);
  tls.client_crl = strictest->client_crl;
  tls.client_auth = strictest->client_auth;
  if (differs)
    notes.add(listen.position, "listen",
              "the servers of " + listen.address + " differ in ssl_verify_client; weir has client_auth = " +
                  toml_string(tls.client_auth) + " for all of them");
  return {};
}

// Gives the socket the highest min_version (of TLS) of its servers, because a listener of weir has only one
// value.
void set_min_version(const Configuration& configuration, Socket& socket, Notes& notes) {
  auto& newest = socket.listener.tls.min_version;
  bool differs = false;
  for (const auto member : socket.members) {
    const auto& other = configuration.servers[member].tls.min_version;
    differs = differs || other != newest;
    newest = std::max(newest, other);
  }
  const auto& listen = socket.listener.listen;
  if (differs)
    notes.add(listen.position, "listen",
              "the servers of " + listen.address + " differ in ssl_protocols; weir has min_version = " +
                  toml_string(newest) + " for all of them");
}

// Sets the certificates of a socket; those of the default server come first. Returns why weir must leave the
// listener out; empty if weir can use it.
std::string set_tls(const Configuration& configuration, Socket& socket, Notes& notes) {
  auto& tls = socket.listener.tls;
  if (!socket.listener.listen.tls) return {};
  tls = configuration.servers[socket.default_server].tls;
  for (const auto member : socket.members) add_certificates(configuration.servers[member].tls, tls);
  std::erase_if(tls.certificates, [](const Certificate& c) { return c.cert.empty() || c.key.empty(); });
  if (tls.certificates.empty()) return socket.listener.listen.address + " has ssl and no ssl_certificate";
  set_min_version(configuration, socket, notes);
  return set_client_auth(configuration, socket, notes);
}

}  // namespace

ListenerGroups arrange_listeners(const Configuration& configuration, Notes& notes) {
  ListenerGroups result;
  auto sockets = sockets_of(configuration);
  join_families(sockets, notes);
  for (auto& socket : sockets) {
    const auto& listen = socket.listener.listen;
    if (const auto fault = set_tls(configuration, socket, notes); !fault.empty()) {
      notes.add(listen.position, "listen", fault + "; the listener is left out");
      continue;
    }
    const auto number = std::to_string(result.listeners.size() + 1);
    socket.listener.name = listen.address.starts_with("unix:") ? "socket" + number : listen.address;
    auto units = order_hosts(configuration.servers, socket.members, socket.default_server);
    const auto same = std::find_if(result.fronts.begin(), result.fronts.end(),
                                   [&](const ListenerGroup& front) { return front.units == units; });
    if (same != result.fronts.end())
      same->listeners.push_back(socket.listener.name);
    else
      result.fronts.push_back({{socket.listener.name}, std::move(units)});
    result.listeners.push_back(std::move(socket.listener));
  }
  if (result.fronts.size() == 1) result.fronts.front().listeners.clear();
  return result;
}

}  // namespace weir::cli::nginx
