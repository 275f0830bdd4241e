// Reads signals from a file descriptor (signalfd(2)), so that one thread receives them all.
//
// A Signals object must be created before any other thread, so that all threads block these signals and no
// signal is lost. The signals stay blocked until the process ends. Belongs to the thread that runs the
// io_context.
#pragma once

#include "weir/net/asio.hpp"

#include <functional>
#include <initializer_list>

#include <boost/asio/posix/basic_stream_descriptor.hpp>

namespace weir::server {

class Signals {
 public:
  // Blocks the signals in `which`. Throws std::system_error if no file descriptor is left.
  Signals(const net::Executor& executor, std::initializer_list<int> which);

  // Starts to call `handler` with the number of each signal, including signals that arrived before listen().
  // Must be called once.
  void listen(std::function<void(int signal)> handler);

 private:
  void await_next();
  void read_all();

  net::asio::posix::basic_stream_descriptor<net::Executor> descriptor_;
  std::function<void(int)> handler_;
};

}  // namespace weir::server
