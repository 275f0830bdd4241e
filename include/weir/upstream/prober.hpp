// Prober probes the servers of upstreams with `health`. It sends one request in each interval, on a separate
// connection, and reports the result to the server's ServerGroup::Member.
//
// server::Program owns the prober. Only the thread that runs the executor uses it. That executor must run no
// tasks (net/task.hpp) of other objects.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/net/watchdog.hpp"
#include "weir/upstream/server_group.hpp"

#include <list>
#include <memory>
#include <vector>

namespace weir::upstream {

class Prober {
 public:
  // `clock` must outlive the prober.
  Prober(net::Executor executor, const net::Clock& clock);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // From now on, probes only the servers of these groups. A new server is probed at once, then at the
  // configured interval.
  void watch(const std::vector<std::shared_ptr<ServerGroup>>& server_groups);

 private:
  class Probe;
  void add(const std::shared_ptr<ServerGroup>& server_group);

  net::Executor executor_;
  const net::Clock& clock_;
  net::Watchdog watchdog_;
  bool ticking_ = false;
  std::list<Probe> probes_;
};

}  // namespace weir::upstream
