// The readiness of one worker's sockets, and the coroutines that wait for it.
//
// Asio tries each read before it waits, so a proxy pays one system call in vain per message. Here a socket is
// registered once, edge-triggered, and its Port remembers what epoll(7) said: a read that came back short
// means that the next one waits, unless the peer has closed its end (EPOLLRDHUP). Asio's loop stays the only
// loop: the reactor's own epoll descriptor is one of the things that it waits for.
//
// Belongs to the thread that runs the io_context, and lives as long as that.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"

#include <array>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/execution_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/intrusive/list.hpp>
#include <sys/epoll.h>

namespace weir::net {

namespace detail {
using AutoUnlink =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
template <class T>
using AutoList = boost::intrusive::list<T, boost::intrusive::constant_time_size<false>>;
}  // namespace detail

class Port;

// A coroutine at rest, in the frame of which this lives.
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

class Reactor final : public asio::execution_context::service {
 public:
  inline static asio::execution_context::id id;
  using key_type = Reactor;

  explicit Reactor(asio::execution_context& context);
  ~Reactor() override;
  // The one of the executor's io_context, made when first asked for. Throws when the process is out of
  // descriptors.
  [[nodiscard]] static Reactor& of(const Executor& executor);

  // Destroys every task that still waits: for an owner of things that tasks refer to, before those go.
  void end_tasks() noexcept;

  // Resumes a coroutine in a moment, from the loop.
  void resume_soon(Suspended& waiter) noexcept;

 private:
  friend class Port;
  template <class Done>
  friend struct Root;
  struct RootHook : detail::AutoUnlink {
    std::coroutine_handle<> frame;
  };
  template <class Done>
  friend void spawn(const Executor& executor, Task<void> task, Done done);

  void shutdown() override;
  [[nodiscard]] ErrorCode add(Port& port) noexcept;
  void forget(Port& port) noexcept;
  void watch();
  void turn();
  void dispatch(const epoll_event& event);
  void run_ready();

  Executor executor_;
  asio::posix::basic_stream_descriptor<Executor> epoll_;
  std::size_t ports_ = 0;
  bool watching_ = false;
  bool ready_posted_ = false;
  detail::AutoList<Suspended> ready_;
  detail::AutoList<RootHook> roots_;
  std::array<epoll_event, 256> events_{};
  int dispatched_ = 0;  // of events_, the first that was not looked at yet
  int fetched_ = 0;
};

// One socket in the reactor. Does not own the descriptor, which must be closed after the port is gone. Where
// the kernel could not register it, every wait answers at once with why.
class Port {
 public:
  Port(Reactor& reactor, int fd);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  class [[nodiscard]] Wait : public Suspended {
   public:
    Wait(bool ready, Wait*& place, ErrorCode unable) noexcept : ready_(ready || unable), place_(&place) {
      result_ = unable;
    }
    explicit Wait(ErrorCode unable) noexcept : ready_(true), place_(nullptr) { result_ = unable; }
    ~Wait() { leave(); }
    bool await_ready() const noexcept { return ready_; }
    void await_suspend(std::coroutine_handle<> caller) noexcept {
      frame_ = caller;
      *place_ = this;
    }
    ErrorCode await_resume() const noexcept { return result_; }

   private:
    friend class Port;
    void leave() noexcept {
      if (place_ != nullptr && *place_ == this) *place_ = nullptr;
      place_ = nullptr;
    }
    const bool ready_;
    Wait** place_;  // in the port; null once this was chosen to go on
  };
  // Waits until a read or a write is worth trying; operation_aborted after cancel(). One of each at a time.
  Wait readable() noexcept { return {readable_, reader_, unable_}; }
  Wait writable() noexcept { return {writable_, writer_, unable_}; }
  void cancel() noexcept;

  [[nodiscard]] bool may_read() const noexcept { return readable_; }
  // A read took all there was, or found nothing.
  void drained() noexcept { readable_ = hung_up_; }
  // A write was not taken whole.
  void filled() noexcept { writable_ = broken_; }
  // The peer has closed its end or the connection broke, as far as the loop has heard.
  [[nodiscard]] bool hung_up() const noexcept { return hung_up_; }
  // Returns true if the connection is over in both directions (EPOLLHUP, EPOLLERR).
  [[nodiscard]] bool broken() const noexcept { return broken_; }

 private:
  friend class Reactor;
  void note(std::uint32_t events) noexcept;
  void abort(Wait* waiter) noexcept;
  // The coroutine to be resumed, which waits no longer; null when there is none.
  [[nodiscard]] static std::coroutine_handle<> release(bool ready, Wait* waiter) noexcept;

  Reactor& reactor_;
  const int fd_;
  ErrorCode unable_;
  bool readable_ = false;
  bool writable_ = true;
  bool hung_up_ = false;
  bool broken_ = false;
  Wait* reader_ = nullptr;
  Wait* writer_ = nullptr;
};

// A coroutine that nobody waits for; destroyed with its io_context if it still waits then.
template <class Done>
struct Root {
  struct promise_type : RecycledFrame {
    promise_type(Reactor& reactor, Task<void>&, Done&) {
      hook.frame = std::coroutine_handle<promise_type>::from_promise(*this);
      reactor.roots_.push_back(hook);
    }
    Root get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
    Reactor::RootHook hook;
  };
  static Root run(Reactor&, Task<void> task, Done done) {
    std::exception_ptr thrown;
    try {
      co_await task;
    } catch (...) {
      thrown = std::current_exception();
    }
    done(thrown);
  }
};

// Begins a task at once, on this stack; `done(std::exception_ptr)` is told its end and must not throw.
template <class Done>
void spawn(const Executor& executor, Task<void> task, Done done) {
  Root<Done>::run(Reactor::of(executor), std::move(task), std::move(done));
}

}  // namespace weir::net
