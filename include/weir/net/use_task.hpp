// use_task: the completion token with which a Task awaits an asynchronous operation of Asio or Beast.
//
//   net::ErrorCode ec;
//   const std::size_t count = co_await socket.async_read_some(buffer, net::use_task(ec));
//
// Stores the operation's error in `ec`, and returns its other result if it has one.
//
// The reactor may destroy the waiting coroutine's frame, and Asio may destroy the operation's handler, in any
// order. Frame and handler point to each other. The destructor of each sets the pointer in the other to null.
// A handler without a frame does nothing.
#pragma once

#include "weir/net/asio.hpp"

#include <coroutine>
#include <cstddef>
#include <tuple>
#include <utility>

#include <boost/asio/async_result.hpp>

namespace weir::net {

struct UseTask {
  ErrorCode& ec;
};

[[nodiscard]] inline UseTask use_task(ErrorCode& ec) noexcept {
  return {ec};
}

namespace detail {

template <class... Values>
class OperationHandler;

// Receives the results from the operation's handler, which then resumes the waiting coroutine. Lives in the
// frame of that coroutine.
template <class... Values>
class PendingOperation {
 public:
  PendingOperation(const PendingOperation&) = delete;
  PendingOperation& operator=(const PendingOperation&) = delete;

 protected:
  explicit PendingOperation(ErrorCode& ec) noexcept : ec_(ec) {}
  ~PendingOperation() {
    if (handler_ != nullptr) handler_->pending_ = nullptr;
  }

  std::coroutine_handle<> frame_;
  std::tuple<Values...> values_;  // the operation's results besides its error; there is at most one

 private:
  friend class OperationHandler<Values...>;

  ErrorCode& ec_;
  OperationHandler<Values...>* handler_ = nullptr;  // null before the operation starts and after it ends
};

// The operation's completion handler, which Asio stores and moves.
template <class... Values>
class OperationHandler {
 public:
  explicit OperationHandler(PendingOperation<Values...>& pending) noexcept : pending_(&pending) {
    pending.handler_ = this;
  }
  OperationHandler(OperationHandler&& other) noexcept : pending_(std::exchange(other.pending_, nullptr)) {
    if (pending_ != nullptr) pending_->handler_ = this;
  }
  OperationHandler& operator=(OperationHandler&&) = delete;
  ~OperationHandler() {
    if (pending_ != nullptr) pending_->handler_ = nullptr;
  }

  void operator()(const ErrorCode& ec, Values... values) {
    if (pending_ == nullptr) return;
    auto& pending = *std::exchange(pending_, nullptr);
    pending.handler_ = nullptr;
    pending.ec_ = ec;
    pending.values_ = std::tuple<Values...>(std::move(values)...);
    pending.frame_.resume();
  }

 private:
  friend class PendingOperation<Values...>;

  PendingOperation<Values...>* pending_;  // null once the frame is destroyed
};

// The awaiter: starts the operation once the frame is suspended. If the start throws, usually std::bad_alloc,
// the waiting coroutine gets the exception.
template <class Initiation, class Arguments, class... Values>
class [[nodiscard]] OperationWait : public PendingOperation<Values...> {
 public:
  OperationWait(ErrorCode& ec, Initiation initiation, Arguments arguments)
      : PendingOperation<Values...>(ec),
        initiation_(std::move(initiation)),
        arguments_(std::move(arguments)) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) {
    this->frame_ = caller;
    std::apply(
        [this](auto&... arguments) {
          std::move(initiation_)(OperationHandler<Values...>(*this), std::move(arguments)...);
        },
        arguments_);
  }
  auto await_resume() noexcept {
    static_assert(sizeof...(Values) <= 1);
    if constexpr (sizeof...(Values) == 1) return std::get<0>(std::move(this->values_));
  }

 private:
  Initiation initiation_;
  Arguments arguments_;
};

}  // namespace detail

}  // namespace weir::net

template <class... Values>
class boost::asio::async_result<weir::net::UseTask, void(weir::net::ErrorCode, Values...)> {
  template <class Initiation, class... Arguments>
  using Wait = weir::net::detail::OperationWait<std::decay_t<Initiation>,
                                                std::tuple<std::decay_t<Arguments>...>, Values...>;

 public:
  template <class Initiation, class... Arguments>
  static Wait<Initiation, Arguments...> initiate(Initiation&& initiation, weir::net::UseTask token,
                                                 Arguments&&... arguments) {
    return Wait<Initiation, Arguments...>(token.ec, std::forward<Initiation>(initiation),
                                          {std::forward<Arguments>(arguments)...});
  }
};
