#include "weir/net/task.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::net {
namespace {

// Suspends the awaiting coroutine until the test resumes it.
struct Gate {
  std::coroutine_handle<> waiter;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) noexcept { waiter = caller; }
  void await_resume() const noexcept {}
};

Task<int> add(int a, int b) {
  co_return a + b;
}

Task<int> sum(int count) {
  int total = 0;
  for (int i = 0; i < count; ++i) total = co_await add(total, 1);
  co_return total;
}

TEST(Task, TaskThatNeverWaitsCompletesSynchronously) {
  auto task = sum(3);
  EXPECT_TRUE(task.await_ready());
  EXPECT_EQ(task.await_resume(), 3);
}

// A task may complete without waiting. If the task then resumed its caller by a nested call, each await would
// use more stack.
TEST(Task, MillionAwaitsUseNoMoreStackThanOneAwait) {
  auto task = sum(1'000'000);
  EXPECT_TRUE(task.await_ready());
  EXPECT_EQ(task.await_resume(), 1'000'000);
}

Task<std::string> innermost(Gate& gate) {
  co_await gate;
  co_return "through";
}
Task<std::string> outer(Gate& gate) {
  auto word = co_await innermost(gate);
  word += " two";
  co_return word;
}

TEST(Task, TaskThatWaitsSuspendsAllItsCallers) {
  Gate gate;
  auto task = outer(gate);
  EXPECT_FALSE(task.await_ready());
  ASSERT_TRUE(gate.waiter);
  task.await_suspend(std::noop_coroutine());
  gate.waiter.resume();
  EXPECT_EQ(task.await_resume(), "through two");
}

Task<void> fail(Gate* gate) {
  if (gate != nullptr) co_await *gate;
  throw std::runtime_error("no");
}
Task<std::string> caught(Gate* gate) {
  try {
    co_await fail(gate);
  } catch (const std::runtime_error& error) {
    co_return error.what();
  }
  co_return "";
}

TEST(Task, ExceptionReachesTheCallerWhetherOrNotTheTaskWaitedBefore) {
  auto now = caught(nullptr);
  EXPECT_TRUE(now.await_ready());
  EXPECT_EQ(now.await_resume(), "no");
  Gate gate;
  auto later = caught(&gate);
  EXPECT_FALSE(later.await_ready());
  gate.waiter.resume();
  EXPECT_EQ(later.await_resume(), "no");
}

struct Noted {
  std::vector<std::string>& order;
  std::string name;
  Noted(std::vector<std::string>& an_order, std::string a_name) : order(an_order), name(std::move(a_name)) {}
  Noted(const Noted&) = delete;
  Noted& operator=(const Noted&) = delete;
  ~Noted() { order.push_back(name); }
};

Task<void> inner_holding(Gate& gate, std::vector<std::string>& order) {
  const Noted held(order, "inner");
  co_await gate;
}
Task<void> outer_holding(Gate& gate, std::vector<std::string>& order) {
  const Noted held(order, "outer");
  co_await inner_holding(gate, order);
}

TEST(Task, DestroyingAWaitingTaskDestroysTheInnermostTaskFirst) {
  std::vector<std::string> order;
  Gate gate;
  {
    auto task = outer_holding(gate, order);
    EXPECT_FALSE(task.await_ready());
    EXPECT_TRUE(order.empty());
  }
  EXPECT_EQ(order, (std::vector<std::string>{"inner", "outer"}));
}

TEST(Task, CanBeCreatedAlreadyCompletedWithAValue) {
  auto task = Task<std::unique_ptr<int>>::ended(std::make_unique<int>(7));
  auto moved = std::move(task);
  EXPECT_TRUE(moved.await_ready());
  EXPECT_EQ(*moved.await_resume(), 7);
}

TEST(Task, ReturnsValuesThatCannotBeCopied) {
  auto task = [](int value) -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(value); }(7);
  EXPECT_TRUE(task.await_ready());
  EXPECT_EQ(*task.await_resume(), 7);
}

}  // namespace
}  // namespace weir::net
