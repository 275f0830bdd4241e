// The signals that a program is told with, as something to read (signalfd(2)) instead of handlers that break
// into whatever thread the kernel picks. Made before the first other thread, so that all of them hold the
// signals back and none is lost to a thread that is just beginning or ending; from then on they are held back
// for as long as the process lives. Belongs to the thread that runs the io_context.
#pragma once

#include "weir/net/asio.hpp"

#include <functional>
#include <initializer_list>

#include <boost/asio/posix/basic_stream_descriptor.hpp>

namespace weir::app {

class Signals {
 public:
  // Throws std::system_error where the kernel has no descriptor left.
  Signals(const net::Executor& executor, std::initializer_list<int> which);

  // Calls `told` with the number of each signal that comes, what came before this call first. Once.
  void listen(std::function<void(int signal)> told);

 private:
  void await_next();
  void read_all();

  net::asio::posix::basic_stream_descriptor<net::Executor> descriptor_;
  std::function<void(int)> told_;
};

}  // namespace weir::app
