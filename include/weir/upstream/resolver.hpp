// Looks up the names of servers at the interval `resolve` of their upstream, and passes the addresses to each
// ServerGroup::Member.
//
// server::Program owns the resolver. Only the thread that runs `control` uses it. One separate thread runs
// all look-ups, one after another, because the system's resolver blocks and cannot be cancelled. A silent
// name server delays the look-ups of other names, but neither requests nor the shutdown.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/upstream/resolution.hpp"
#include "weir/upstream/server_group.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace weir::upstream {

class Resolver {
 public:
  // Called with one log line for each change.
  using Report = std::function<void(const std::string&)>;
  // Looks up a name. Called on the look-up thread, possibly even after the resolver is destroyed.
  using LookUp = std::function<base::Result<Addresses>(const base::Endpoint&)>;

  // Counts of look-ups by their results, since the upstream was added.
  struct Figures {
    std::string upstream{};
    std::uint64_t same = 0, changed = 0, failed = 0;
  };

  // `control` and `clock` must outlive the resolver.
  Resolver(net::asio::io_context& control, const net::Clock& clock, Report report,
           LookUp look_up = net::resolve);
  // Does not wait until a running look-up ends.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // From now on, looks up only the names of the servers in these groups. Throws std::system_error if no
  // thread can be started.
  void watch(const std::vector<std::shared_ptr<ServerGroup>>& server_groups);

  // Returns the counts of look-ups for each upstream whose names are looked up repeatedly.
  [[nodiscard]] std::vector<Figures> figures() const;

 private:
  struct Desk;
  struct Name;
  void add(const std::shared_ptr<ServerGroup>& server_group);
  void drop_known();
  void arm();
  void ask();
  void hear(const base::Result<Addresses>& answer);
  void note(Name& name, const base::Result<Addresses>& answer);

  net::asio::io_context& control_;
  const net::Clock& clock_;
  const Report report_;
  net::Timer timer_;
  const std::shared_ptr<Desk> desk_;          // shared with the look-up thread, which may outlive this object
  std::thread thread_;                        // runs look-ups; starts with the first name
  std::vector<std::shared_ptr<Name>> names_;  // shared_ptr, because asked_ is a weak_ptr to a name
  std::weak_ptr<Name> asked_;
  bool asking_ = false;
  std::map<std::string, Figures> figures_;  // the key is the upstream's name
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace weir::upstream
