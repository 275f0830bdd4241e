// The connections of the admin listener with their deadlines. If there are too many, one of them must give
// way. All belong to one thread.
#pragma once

#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"

#include <chrono>
#include <cstddef>
#include <set>
#include <utility>

namespace weir::admin {

class Connection;

class Connections {
 public:
  // If there are `most` connections, closes the one without progress for the longest time. So idle
  // connections never keep a health check out.
  void make_room(std::size_t most);
  // Ends the wait of each connection whose deadline has passed.
  void end_late();
  void close_all();
  // Returns true if a request waits for its response.
  [[nodiscard]] bool is_answering() const;

 private:
  friend class Connection;
  std::set<Connection*> all_;
};

// Lives in the frame of its coroutine, and registers itself in `all`, which outlives it.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  Connection(net::Socket accepted, Connections& all) : socket(std::move(accepted)), all_(all) {
    all_.all_.insert(this);
  }
  ~Connection() { all_.all_.erase(this); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Starts a step that may take so long.
  void begin(base::Duration allowance) {
    since = Clock::now();
    deadline = since + allowance;
  }

  // Ends the wait. A first time-out while reading a body only cancels the read; otherwise the socket is
  // closed.
  void end_wait();
  void close();

  net::Socket socket;
  Clock::time_point since;  // start of the present step
  Clock::time_point deadline;
  bool reads_body = false;
  bool answers = false;  // between a request's head and the last byte of its response
  bool late = false;     // the body took too long

 private:
  Connections& all_;
};

}  // namespace weir::admin
