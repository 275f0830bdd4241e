// Looks up names by DNS and /etc/hosts on an event loop, without threads. Any look-up can be cancelled.
//
// c-ares reads /etc/hosts, /etc/nsswitch.conf and /etc/resolv.conf anew for each look-up, so a change of
// these files takes effect. Names with few dots are completed from the search domains. Each name server is
// asked twice: weir waits 2 s, then 4 s.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::net {

class DnsChannel;

// IP addresses and ports of the name servers to ask. Empty: weir asks the servers in /etc/resolv.conf.
using NameServers = std::vector<base::Endpoint>;

// The addresses of a name, in the order in which to try them (RFC 6724).
struct NameAnswer {
  std::vector<RawEndpoint> addresses;
  // How long the addresses are valid. nullopt: unknown, because the name is in /etc/hosts.
  std::optional<base::Duration> ttl;
};

// The largest number of look-ups that one owner runs at a time. Bounded, because each look-up needs a
// descriptor for each name server.
inline constexpr std::size_t kMostLookups = 16;

// The longest time that the look-ups of all names together may take at a start or a reload. This is one
// second more than a look-up at a silent name server takes (2 s + 4 s). So weir still finds the other hosts
// of a service (SRV) if the name of one host gets no answer.
inline constexpr std::chrono::seconds kLongestLookups{7};

// One look-up of the addresses of a host name, IPv4 and IPv6. The destructor cancels the look-up.
class DnsLookup {
 public:
  // Called once on the event loop, unless the look-up is destroyed first. May destroy the look-up.
  using Done = std::function<void(base::Result<NameAnswer>)>;

  // `context` must outlive the look-up, and only its thread may use the look-up.
  DnsLookup(asio::io_context& context, const base::Endpoint& name, const NameServers& name_servers,
            Done done);
  ~DnsLookup();
  DnsLookup(const DnsLookup&) = delete;
  DnsLookup& operator=(const DnsLookup&) = delete;

 private:
  struct Callback;

  const std::string host_;
  Done done_;
  base::Result<NameAnswer> answer_;
  std::shared_ptr<DnsChannel> channel_;  // shared with the channel's handlers on the event loop
  // This timer never expires. When the look-up has its answer, c-ares or the constructor may still be
  // running. So the look-up only cancels the timer, whose handler calls `done_` later. Unlike a post,
  // cancelling needs no memory.
  Timer ended_;
};

// Looks up these addresses, at most kMostLookups at a time, and returns the answers in the same order. An IP
// address or a unix socket needs no look-up. Blocks the calling thread, for at most `longest`. Names that
// have no answer by then get an error.
[[nodiscard]] std::vector<base::Result<NameAnswer>> look_up_all(const std::vector<base::Endpoint>& addresses,
                                                                const NameServers& name_servers,
                                                                base::Duration longest = kLongestLookups);

}  // namespace weir::net
