// Looks the names of servers up again, each every `resolve` of its upstream, and tells their Fleet::Member
// where they are.
//
// Belongs to the thread that runs `control`. The look-ups have a thread of their own, one after another, for
// the system's resolver blocks and nobody can cancel it: silent name servers delay other names, and neither
// requests nor the end.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/upstream/fleet.hpp"
#include "weir/upstream/resolution.hpp"

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
  // Told of what changed, one line each.
  using Report = std::function<void(const std::string&)>;
  // Called on the look-ups' thread, and may outlive the resolver there.
  using LookUp = std::function<base::Result<Addresses>(const base::Endpoint&)>;

  // Look-ups since their upstream came.
  struct Figures {
    std::string upstream{};
    std::uint64_t same = 0, changed = 0, failed = 0;
  };

  // `control` and `clock` outlive it.
  Resolver(net::asio::io_context& control, const net::Clock& clock, Report report,
           LookUp look_up = net::resolve);
  // Does not wait for a look-up that is under way.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Looks up the names of these from now on. Throws std::system_error where there is no thread for it.
  void watch(const std::vector<std::shared_ptr<Fleet>>& fleets);

  // Of each upstream that has names to be looked up again.
  [[nodiscard]] std::vector<Figures> figures() const;

 private:
  struct Desk;
  struct Name;
  void add(const std::shared_ptr<Fleet>& fleet);
  void drop_known();
  void arm();
  void ask();
  void hear(const base::Result<Addresses>& answer);
  void note(Name& name, const base::Result<Addresses>& answer);

  net::asio::io_context& control_;
  const net::Clock& clock_;
  const Report report_;
  net::Timer timer_;
  const std::shared_ptr<Desk> desk_;          // shared with the thread, which may outlive this
  std::thread thread_;                        // begins with the first name
  std::vector<std::shared_ptr<Name>> names_;  // shared with nobody: what is asked about may go meanwhile
  std::weak_ptr<Name> asked_;
  bool asking_ = false;
  std::map<std::string, Figures> figures_;  // by upstream
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace weir::upstream
