// Looks up the names of servers again while weir runs, and passes the addresses to each ServerGroup::Member.
// Also looks up the SRV records of services again, and reports the new servers when the records change.
//
// server::Program owns the resolver. Only the thread that runs `control` uses it. If net::kMostLookups
// look-ups wait for a silent name server, the look-ups of other names wait, too. Requests and the shutdown
// never wait for a name server.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/net/dns_lookup.hpp"
#include "weir/upstream/resolution.hpp"
#include "weir/upstream/server_group.hpp"
#include "weir/upstream/services.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace weir::upstream {

class Resolver {
 public:
  // Called with one log line for each change.
  using Report = std::function<void(const std::string&)>;

  // Called with an upstream after the servers of its service have changed. May call watch().
  using Change = std::function<void(const ResolvedUpstream&)>;

  // Counts of look-ups by their results, since the upstream was added.
  struct Figures {
    std::string upstream{};
    std::uint64_t same = 0, changed = 0, failed = 0;
  };

  // `control` and `clock` must outlive the resolver.
  Resolver(net::asio::io_context& control, const net::Clock& clock, Report report, Change change = {});
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // From now on, looks up only the names of the servers in these groups, and asks these name servers.
  void watch(const std::vector<std::shared_ptr<ServerGroup>>& server_groups,
             const net::NameServers& name_servers);

  // Returns the counts of look-ups for each upstream that has names of servers to look up repeatedly.
  [[nodiscard]] std::vector<Figures> figures() const;

 private:
  struct Name;
  void add(const std::shared_ptr<ServerGroup>& server_group);
  void follow_services(const std::vector<std::shared_ptr<ServerGroup>>& server_groups);
  void drop_known();
  [[nodiscard]] Name* find_next() noexcept;
  void arm();
  void ask();
  void handle_addresses(Name& name, const base::Result<net::NameAnswer>& answer);
  void handle_services(Name& name, const base::Result<net::ServiceAnswer>& answer);
  void note(Name& name, const base::Result<net::NameAnswer>& answer);
  void count(const ServerGroup& server_group, Resolution::Outcome outcome);

  net::asio::io_context& control_;
  const net::Clock& clock_;
  const Report report_;
  const Change change_;
  net::Timer timer_;
  net::NameServers name_servers_;
  std::list<Name> names_;                   // a list, because look-ups under way refer to their names
  std::map<std::string, Figures> figures_;  // the key is the upstream's name
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace weir::upstream
