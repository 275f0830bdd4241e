// Tracks which sockets of one worker are ready, and resumes the coroutines that wait for these sockets.
//
// Asio tries each read before it waits, which wastes one system call for each message. The reactor registers
// a socket once, edge-triggered, and the socket's Port remembers what epoll(7) reported. After a short read,
// the next read waits, unless the peer has closed its end (EPOLLRDHUP). Asio's loop remains the only event
// loop, and its epoll the only epoll (wait_for_events(), docs/design/event-loop.md).
//
// Belongs to the thread that runs the io_context, and lives as long as the io_context.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/suspended.hpp"
#include "weir/net/task.hpp"

#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <sys/epoll.h>

namespace weir::net {

class Port;

class Reactor final : public asio::execution_context::service {
 public:
  inline static asio::execution_context::id id;
  using key_type = Reactor;

  explicit Reactor(asio::execution_context& context);
  ~Reactor() override;
  // Returns the reactor of the io_context. The first call throws boost::system::system_error if no descriptor
  // is left.
  [[nodiscard]] static Reactor& of(const Executor& executor);

  // Destroys all waiting tasks. Must be called before objects that the tasks refer to are destroyed. The loop
  // must not run afterwards, because pending operations of Asio may use buffers of the destroyed frames.
  void end_tasks() noexcept;

  // Returns how often the kernel has reported all its events to the reactor. While a coroutine runs, every
  // port knows all events that had happened before the last of these reports.
  [[nodiscard]] std::uint64_t polls() const noexcept { return polls_; }

  // Resumes a coroutine later, from the event loop.
  void resume_soon(Suspended& waiter) noexcept;

  // Asio's loop calls this function instead of epoll_wait(2) (src/net/asio.cpp). Tells Port objects their
  // events at once. Their coroutines are resumed afterwards, from the loop. Returns the number of Asio's own
  // events, which remain in `events`, or -1 after an error.
  static int wait_for_events(int epoll, epoll_event* events, int room, int timeout) noexcept;

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
  // The next three functions return the error number of epoll_ctl(2), or 0.
  [[nodiscard]] int add(Port& port) noexcept;
  [[nodiscard]] int report_room(Port& port) noexcept;
  [[nodiscard]] int control(Port& port, int operation, std::uint32_t events) noexcept;
  void forget(Port& port) noexcept;
  void keep(Port& port) noexcept;
  void turn();
  void dispatch(Port& port);
  void run_ready();

  Executor executor_;
  const int epoll_;  // owned by Asio
  // Present while Port objects exist. Without work, io_context::run() would return although coroutines wait.
  std::optional<asio::executor_work_guard<Executor>> work_;
  std::size_t ports_ = 0;      // number of Port objects
  bool ready_posted_ = false;  // true: a call of run_ready() is posted
  detail::AutoList<Suspended> ready_;
  detail::AutoList<RootHook> roots_;
  detail::AutoList<Port> reported_;  // ports with new events, whose coroutines turn() resumes
  std::uint64_t polls_ = 0;
};

// One socket in the reactor. Does not own the descriptor, which must be closed after the Port is destroyed.
// If epoll does not accept the socket, every wait returns the kernel's error at once.
class Port : public detail::AutoUnlink {
 public:
  Port(Reactor& reactor, int fd);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  class [[nodiscard]] Wait : public Suspended {
   public:
    Wait(bool ready, Wait*& place, int unable) noexcept
        : ready_(ready || unable != 0), registration_(&place) {
      if (unable != 0) result_ = {unable, boost::system::system_category()};
    }
    explicit Wait(ErrorCode unable) noexcept : ready_(true), registration_(nullptr) { result_ = unable; }
    ~Wait() { leave(); }
    bool await_ready() const noexcept { return ready_; }
    void await_suspend(std::coroutine_handle<> caller) noexcept {
      frame_ = caller;
      *registration_ = this;
    }
    ErrorCode await_resume() const noexcept { return result_; }

   private:
    friend class Port;
    friend class Readiness;
    void leave() noexcept {
      if (registration_ != nullptr && *registration_ == this) *registration_ = nullptr;
      registration_ = nullptr;
    }
    const bool ready_;
    Wait** registration_;  // where the Port stores the address of this Wait; null after leave()
  };
  // readable() waits until a read may succeed, writable() until a write may succeed. Both return
  // operation_aborted after cancel(). At most one wait of each kind may run at a time.
  Wait readable() noexcept { return {readable_, reader_, unable_}; }
  Wait writable() noexcept { return {writable_, writer_, unable_}; }
  void cancel() noexcept;

  [[nodiscard]] bool may_read() const noexcept { return readable_; }
  // Must be called after a read that returned fewer bytes than requested, or none.
  void drained() noexcept { readable_ = hung_up_; }
  // Must be called after a write that the socket accepted only in part, and before the wait for a connect.
  // epoll does not report writable sockets before the first call. Otherwise it would wake the worker for each
  // new socket, because a new socket is writable.
  void filled() noexcept;
  // Returns true if the loop has seen that the peer closed its end or the connection broke.
  [[nodiscard]] bool hung_up() const noexcept { return hung_up_; }
  // Returns true if the connection has ended in both directions (EPOLLHUP, EPOLLERR).
  [[nodiscard]] bool broken() const noexcept { return broken_; }

 private:
  friend class Reactor;
  void note(std::uint32_t events) noexcept;
  void abort(Wait* waiter) noexcept;
  // If `ready` is true, ends the wait `waiter` and returns its coroutine, which the caller must resume.
  // Returns null if `ready` is false or `waiter` is null.
  [[nodiscard]] static std::coroutine_handle<> release(bool ready, Wait* waiter) noexcept;

  Reactor& reactor_;
  const int fd_;
  int unable_;  // the error number with which epoll rejected the socket; 0: none
  bool readable_ = false;
  bool writable_ = true;
  bool reports_room_ = false;  // true: epoll reports when the socket becomes writable
  bool hung_up_ = false;
  bool broken_ = false;
  Wait* reader_ = nullptr;
  Wait* writer_ = nullptr;
};

// The coroutine in which spawn() runs a task. If the coroutine still waits when the io_context is destroyed,
// the io_context destroys the coroutine.
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

// Starts a task at once, on the caller's stack. When the task ends, calls `done(std::exception_ptr)`, which
// must not throw.
template <class Done>
void spawn(const Executor& executor, Task<void> task, Done done) {
  Root<Done>::run(Reactor::of(executor), std::move(task), std::move(done));
}

}  // namespace weir::net
