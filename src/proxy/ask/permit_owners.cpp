#include "weir/proxy/permit_owners.hpp"

#include <new>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::proxy {

unsigned PermitOwners::join(net::Executor executor, Permits& permits) {
  const std::lock_guard lock(mutex_);
  owners_.emplace(next_, Owner{std::move(executor), &permits});
  return next_++;
}

void PermitOwners::leave(unsigned owner) noexcept {
  const std::lock_guard lock(mutex_);
  owners_.erase(owner);
}

// Posts under the lock, because the executor of a worker that has left may no longer exist. The job runs on
// the worker's thread, where the permits exist as long as the loop runs.
bool PermitOwners::post(unsigned owner, Job job) {
  const std::lock_guard lock(mutex_);
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return false;
  net::asio::post(found->second.executor, [permits = found->second.permits, todo = std::move(job)] {
    try {
      todo(*permits);
    } catch (const std::bad_alloc&) {  // an exception would end the worker's loop
    }
  });
  return true;
}

}  // namespace weir::proxy
