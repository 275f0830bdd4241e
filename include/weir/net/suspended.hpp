// A coroutine that waits for the reactor (reactor.hpp), and the lists in which the reactor keeps its objects.
#pragma once

#include "weir/net/asio.hpp"

#include <coroutine>

#include <boost/intrusive/list.hpp>

namespace weir::net {

class Reactor;

namespace detail {
using AutoUnlink =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
template <class T>
using AutoList = boost::intrusive::list<T, boost::intrusive::base_hook<AutoUnlink>,
                                        boost::intrusive::constant_time_size<false>>;
}  // namespace detail

// A suspended coroutine. This object lives in the coroutine's frame.
class Suspended : public detail::AutoUnlink {
 public:
  Suspended() = default;
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;

 protected:
  ~Suspended() = default;
  std::coroutine_handle<> frame_;
  ErrorCode result_;

 private:
  friend class Reactor;
};

}  // namespace weir::net
