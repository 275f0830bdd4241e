// Objects that a coroutine can await, besides sockets: an event that another task raises, and a pause.
//
// Each object belongs to the worker that created it.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/reactor.hpp"

#include <coroutine>

#include <boost/asio/error.hpp>

namespace weir::net {

// An event that one coroutine waits for and another coroutine raises. A raised event stays raised.
class Signal {
 public:
  explicit Signal(const Executor& executor) : reactor_(Reactor::of(executor)) {}
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  void raise() noexcept;

  class [[nodiscard]] Wait : public Suspended {
   public:
    explicit Wait(Signal& signal) noexcept : signal_(signal) {}
    ~Wait() {
      if (signal_.waiter_ == this) signal_.waiter_ = nullptr;
    }
    bool await_ready() const noexcept { return signal_.raised_; }
    void await_suspend(std::coroutine_handle<> caller) noexcept;
    void await_resume() const noexcept {}

   private:
    Signal& signal_;
  };
  Wait wait() noexcept { return Wait(*this); }

 private:
  Reactor& reactor_;
  Wait* waiter_ = nullptr;
  bool raised_ = false;
};

// An event that can occur many times. One coroutine waits for the next notification by another coroutine. A
// notification is lost if no coroutine waits. So a coroutine must check the condition that it waits for
// before it waits.
class Notification {
 public:
  explicit Notification(const Executor& executor) : reactor_(Reactor::of(executor)) {}
  Notification(const Notification&) = delete;
  Notification& operator=(const Notification&) = delete;

  void notify() noexcept { end({}); }
  // Ends the wait with operation_aborted.
  void cancel() noexcept { end(asio::error::operation_aborted); }

  class [[nodiscard]] Wait : public Suspended {
   public:
    explicit Wait(Notification& event) noexcept : event_(event) {}
    ~Wait() {
      if (event_.waiter_ == this) event_.waiter_ = nullptr;
    }
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> caller) noexcept {
      frame_ = caller;
      event_.waiter_ = this;
    }
    [[nodiscard]] ErrorCode await_resume() const noexcept { return result_; }

   private:
    friend class Notification;
    Notification& event_;
  };
  [[nodiscard]] Wait wait() noexcept { return Wait(*this); }

 private:
  void end(const ErrorCode& result) noexcept;

  Reactor& reactor_;
  Wait* waiter_ = nullptr;
};

// An event of an object that is not a socket, such as a stream of an HTTP/2 connection. A coroutine waits for
// the event with a Port::Wait, as for a socket.
class Readiness {
 public:
  explicit Readiness(const Executor& executor) : reactor_(Reactor::of(executor)) {}
  ~Readiness() { cancel(); }
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // Waits until notify() is called. Does not wait if `ready` is true. At most one coroutine may wait.
  [[nodiscard]] Port::Wait wait(bool ready) noexcept { return {ready, waiter_, {}}; }
  void notify() noexcept { end({}); }
  // Ends the wait with operation_aborted.
  void cancel() noexcept { end(asio::error::operation_aborted); }

 private:
  void end(const ErrorCode& result) noexcept;

  Reactor& reactor_;
  Port::Wait* waiter_ = nullptr;
};

// Lets the event loop handle all other ready events, then resumes the task. A task that may run long without
// waiting should await a Pause. A Pause does not report a cancellation, so the task must check afterwards
// whether it was cancelled.
class [[nodiscard]] Pause : public Suspended {
 public:
  explicit Pause(const Executor& executor) : reactor_(Reactor::of(executor)) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) noexcept {
    frame_ = caller;
    reactor_.resume_soon(*this);
  }
  void await_resume() const noexcept {}

 private:
  Reactor& reactor_;
};

}  // namespace weir::net
