#include "weir/upgrade/passed_sockets.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace weir::upgrade {

namespace {

constexpr int kFirst = 3;  // SD_LISTEN_FDS_START
constexpr int kMostSockets = 64;

std::optional<int> number_in(const char* variable) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): no thread runs yet
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

base::Endpoint place_of(int fd) {
  const auto local = net::local_endpoint(fd);
  if (local.data()->sa_family != AF_UNIX)
    return {net::peer_address(local).to_string(), net::peer_port(local), {}};
  const auto* unix_socket = reinterpret_cast<const sockaddr_un*>(local.data());
  return {{}, 0, std::string(unix_socket->sun_path)};
}

bool listens_at(const base::Endpoint& place, const base::Endpoint& wanted) {
  if (place == wanted) return true;
  if (place.is_unix() || wanted.is_unix() || place.port != wanted.port) return false;
  if (place.host == "::" && wanted.host == "0.0.0.0") return true;
  const auto addresses = net::resolve(wanted);
  return addresses && std::any_of(addresses->begin(), addresses->end(), [&](const net::RawEndpoint& each) {
           return net::peer_address(each).to_string() == place.host;
         });
}

}  // namespace

PassedSockets PassedSockets::of_environment() {
  PassedSockets passed;
  const auto process = number_in("LISTEN_PID");
  const auto count = number_in("LISTEN_FDS");
  for (const auto* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"})
    ::unsetenv(variable);  // NOLINT(concurrency-mt-unsafe): no thread runs yet
  if (!process || *process != ::getpid() || !count) return passed;
  for (int fd = kFirst; fd < kFirst + std::min(*count, kMostSockets); ++fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0) continue;
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    passed.sockets_.emplace_back(fd);
  }
  return passed;
}

std::vector<net::ListeningSocket> PassedSockets::take(const base::Endpoint& address) {
  std::vector<net::ListeningSocket> found;
  for (auto& one : sockets_) {
    if (one.get() < 0 || !listens_at(place_of(one.get()), address)) continue;
    auto socket = net::ListeningSocket::inherit(one.release(), address);
    if (socket) found.push_back(std::move(*socket));
  }
  if (!found.empty()) taken_.push_back(address);
  return found;
}

bool PassedSockets::took(const base::Endpoint& address) const {
  return std::find(taken_.begin(), taken_.end(), address) != taken_.end();
}

std::vector<std::string> PassedSockets::unclaimed() const {
  std::vector<std::string> places;
  for (const auto& one : sockets_)
    if (one.get() >= 0) places.push_back(place_of(one.get()).to_string());
  return places;
}

}  // namespace weir::upgrade
