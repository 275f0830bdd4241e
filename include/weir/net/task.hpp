// Task: a coroutine that its caller awaits. `co_await` runs the task on the caller's stack. The caller is
// suspended only if the task waits. A task that completes without waiting costs one call, and its frame is
// reused.
//
// A task belongs to the worker that started it; only that thread resumes it. Destroying a waiting task
// destroys its local objects and the tasks that it awaits, innermost first.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace weir::net {

// take_frame() returns memory for a coroutine's frame. Each thread keeps freed frames for reuse, so a thread
// that has run for a while needs no allocation. Throws std::bad_alloc.
[[nodiscard]] void* take_frame(std::size_t size);
void give_back_frame(void* frame, std::size_t size) noexcept;

struct RecycledFrame {
  static void* operator new(std::size_t size) { return take_frame(size); }
  static void operator delete(void* frame, std::size_t size) noexcept { give_back_frame(frame, size); }
};

template <class T = void>
class Task;

namespace detail {

class TaskPromise : public RecycledFrame {
 public:
  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept {
    struct Return {
      std::coroutine_handle<> caller;  // null while the task runs on its caller's stack
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept {
        return caller ? caller : std::noop_coroutine();
      }
      void await_resume() noexcept {}
    };
    return Return{caller_};
  }
  void unhandled_exception() noexcept { thrown_ = std::current_exception(); }
  void return_to(std::coroutine_handle<> caller) noexcept { caller_ = caller; }

 protected:
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  std::coroutine_handle<> caller_;
  std::exception_ptr thrown_;
};

template <class T>
class ValuePromise : public TaskPromise {
 public:
  Task<T> get_return_object() noexcept;
  template <class U>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T result() {
    rethrow();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

class VoidPromise : public TaskPromise {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void result() const { rethrow(); }
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = std::conditional_t<std::is_void_v<T>, detail::VoidPromise, detail::ValuePromise<T>>;
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  explicit Task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
  // Returns a completed task with the result `value`, for functions that need not wait. Needs no coroutine
  // frame.
  static Task ended(Value value) noexcept { return Task(std::move(value)); }
  Task(Task&& other) noexcept
      : frame_(std::exchange(other.frame_, nullptr)), value_(std::move(other.value_)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (frame_) frame_.destroy();
  }

  // Called by co_await. Runs the task on the caller's stack until the task ends or waits for the first time.
  bool await_ready() {
    if (!frame_) return true;
    frame_.resume();
    return frame_.done();
  }
  void await_suspend(std::coroutine_handle<> caller) noexcept { frame_.promise().return_to(caller); }
  T await_resume() {
    if (frame_) return frame_.promise().result();
    if constexpr (!std::is_void_v<T>) return std::move(*value_);
  }

 private:
  explicit Task(Value&& value) noexcept : value_(std::move(value)) {}

  std::coroutine_handle<promise_type> frame_;  // null: the task has completed with the result value_
  std::optional<Value> value_;
};

template <class T>
Task<T> detail::ValuePromise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<ValuePromise>::from_promise(*this));
}

inline Task<void> detail::VoidPromise::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<VoidPromise>::from_promise(*this));
}

}  // namespace weir::net
