// The connections of the admin listener: until when each may wait for what it waits for, and which gives way
// where there are too many. They belong to one thread.
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
  // Where there are so many, closes the one that has got nowhere for longest: a health check is never kept
  // out by connections that stay silent, whatever they were silent about.
  void make_room(std::size_t most);
  // Ends the wait of whoever has outlived its deadline.
  void end_late();
  void close_all();
  // Somebody has asked and has not been told yet.
  [[nodiscard]] bool is_answering() const;

 private:
  friend class Connection;
  std::set<Connection*> all_;
};

// Lives in the frame of its coroutine, and is among `all`, which outlive it, while it does.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  Connection(net::Socket accepted, Connections& all) : socket(std::move(accepted)), all_(all) {
    all_.all_.insert(this);
  }
  ~Connection() { all_.all_.erase(this); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // What it is about to do began now and may take so long.
  void begin(base::Duration allowance) {
    since = Clock::now();
    deadline = since + allowance;
  }

  // It does not get on. While it sends a body it is told so; else it is closed.
  void end_wait();
  void close();

  net::Socket socket;
  Clock::time_point since;  // when it began to wait: for a head, for its answer to be read, for the end
  Clock::time_point deadline;
  bool reads_body = false;
  bool answers = false;  // from a request's head to the last byte of its answer
  bool late = false;     // with its body

 private:
  Connections& all_;
};

}  // namespace weir::admin
