// Awaiters besides those of sockets: another task's signal, and a pause.
//
// Each object belongs to the worker that created it.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/reactor.hpp"

#include <coroutine>

namespace weir::net {

// An event that one coroutine waits for and another raises. The event cannot be lowered again.
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

// Lets the loop handle all other ready events, then resumes the task. Tasks that may run long without waiting
// should use it. The pause does not report a cancellation, so the task must check for cancellation
// afterwards.
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
