// The connections of the admin listener, and their time limits. If there are too many connections, a new one
// replaces an old one. All connections belong to one thread.
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
  // Must be called before a connection is added. If there are `most` connections, closes the connection that
  // has made no progress for the longest time. So idle connections never prevent a health check.
  void make_room(std::size_t most);
  // Ends the wait of each connection whose time limit has passed.
  void end_late();
  void close_all();
  // Returns true if any request still waits for its response.
  [[nodiscard]] bool is_answering() const;

 private:
  friend class Connection;
  std::set<Connection*> all_;
};

// One connection. A Connection object lives in the frame of the coroutine that serves the connection. The
// object registers itself in `all`, which must outlive the object.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  Connection(net::Socket accepted, Connections& all) : socket(std::move(accepted)), all_(all) {
    all_.all_.insert(this);
  }
  ~Connection() { all_.all_.erase(this); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Starts the connection's next step, which may take at most `allowance`.
  void begin(base::Duration allowance) {
    since = Clock::now();
    deadline = since + allowance;
  }

  // Ends the wait of the coroutine. While a body is read, the first call only cancels the read, so that a
  // response can still be sent. Any other call closes the socket.
  void end_wait();
  void close();

  net::Socket socket;
  Clock::time_point since;  // start time of the present step
  Clock::time_point deadline;
  bool reads_body = false;
  bool answers = false;  // true from the end of the request head to the last byte of the response
  bool late = false;     // true: reading the body took too long

 private:
  Connections& all_;
};

}  // namespace weir::admin
