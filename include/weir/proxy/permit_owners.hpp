// Finds the worker that has a permit of an asker (a program that asks weir for decisions). A permit belongs
// to the worker that decided about its question, but the asker may settle the permit over a connection of
// another worker.
//
// All workers share the object. Thread-safe.
#pragma once

#include "weir/net/asio.hpp"

#include <functional>
#include <map>
#include <mutex>

namespace weir::proxy {

class Permits;

class PermitOwners {
 public:
  // Adds a worker, and returns a number that no other worker of the process gets. Called on the worker's
  // thread. `permits` must remain valid until leave().
  [[nodiscard]] unsigned join(net::Executor executor, Permits& permits);
  void leave(unsigned owner) noexcept;

  // A job runs on the worker's thread. If a job throws std::bad_alloc, the worker goes on with other work.
  using Job = std::function<void(Permits&)>;
  // Posts `job` to the worker with the number `owner`. The job does not run if the worker ends first. Returns
  // false if no worker has this number.
  [[nodiscard]] bool post(unsigned owner, Job job);

 private:
  struct Owner {
    net::Executor executor;
    Permits* permits;
  };

  std::mutex mutex_;
  std::map<unsigned, Owner> owners_;
  unsigned next_ = 0;
};

}  // namespace weir::proxy
