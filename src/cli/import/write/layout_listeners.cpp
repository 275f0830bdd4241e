#include "cli/import/write/layout_listeners.hpp"

#include <algorithm>
#include <utility>

namespace weir::cli::nginx {

namespace {

// An address with the servers that listen there.
struct Socket {
  WeirListener listener;
  std::vector<std::size_t> members;
  std::size_t default_server = 0;
  bool has_default = false;
};

std::string port_of(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

// Returns the address at which weir listens. weir's [::] also takes IPv4, so 0.0.0.0 of the same port joins
// it.
std::string joined_address(const Configuration& configuration, const std::string& address) {
  if (!address.starts_with("0.0.0.0:")) return address;
  const auto wide = "[::]:" + port_of(address);
  for (const auto& server : configuration.servers)
    for (const auto& listen : server.listens)
      if (listen.address == wide) return wide;
  return address;
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
    found->listener.listen = {.place = listen.place, .address = address};
    found->default_server = server;
  }
  auto& whole = found->listener.listen;
  whole.tls |= listen.tls;
  whole.http2 |= listen.http2;
  whole.proxy_protocol |= listen.proxy_protocol;
  if (std::find(found->members.begin(), found->members.end(), server) == found->members.end())
    found->members.push_back(server);
  if (listen.is_default && !std::exchange(found->has_default, true)) found->default_server = server;
}

std::vector<Socket> sockets_of(const Configuration& configuration) {
  std::vector<Socket> sockets;
  for (std::size_t i = 0; i < configuration.servers.size(); ++i)
    for (const auto& listen : configuration.servers[i].listens)
      add_listen(listen, joined_address(configuration, listen.address), i, sockets);
  return sockets;
}

// Sets the certificates of a socket: those of the default server first. Returns false if there are none.
bool set_tls(const Configuration& configuration, Socket& socket) {
  auto& tls = socket.listener.tls;
  if (!socket.listener.listen.tls) return true;
  const auto& chief = configuration.servers[socket.default_server].tls;
  tls = chief;
  for (const auto member : socket.members) {
    const auto& other = configuration.servers[member].tls;
    add_certificates(other, tls);
    if (tls.client_auth.empty())
      std::tie(tls.client_ca, tls.client_auth) = std::tie(other.client_ca, other.client_auth);
  }
  std::erase_if(tls.certificates, [](const Certificate& c) { return c.cert.empty() || c.key.empty(); });
  return !tls.certificates.empty();
}

}  // namespace

Fronts arrange_listeners(const Configuration& configuration, Notes& notes) {
  Fronts result;
  for (auto& socket : sockets_of(configuration)) {
    const auto& listen = socket.listener.listen;
    if (!set_tls(configuration, socket)) {
      notes.add(listen.place, "listen",
                listen.address + " has ssl and no ssl_certificate; the listener is left out");
      continue;
    }
    const auto number = std::to_string(result.listeners.size() + 1);
    socket.listener.name = listen.address.starts_with("unix:") ? "socket" + number : listen.address;
    auto units = order_hosts(configuration.servers, socket.members, socket.default_server);
    const auto same = std::find_if(result.fronts.begin(), result.fronts.end(),
                                   [&](const Front& front) { return front.units == units; });
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
