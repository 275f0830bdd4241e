#include "weir/net/use_task.hpp"

#include "unit/net/sockets.hpp"

#include <memory>
#include <new>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/local/stream_protocol.hpp>

namespace weir::net {
namespace {

struct Read {
  std::size_t count = 0;
  ErrorCode ec;
};

class UseTaskTest : public ::testing::Test {
 protected:
  UseTaskTest() : pair(socket_pair()) {
    socket.assign(asio::generic::stream_protocol(AF_UNIX, SOCK_STREAM), pair.ours);
  }
  Task<Read> read_some() {
    Read read;
    read.count = co_await socket.async_read_some(asio::buffer(bytes), use_task(read.ec));
    co_return read;
  }
  // The coroutine owns `held`, so `held` shows a test whether the coroutine still exists.
  Task<void> rest([[maybe_unused]] std::shared_ptr<int> held) {
    ErrorCode ignored;
    co_await timer.async_wait(use_task(ignored));
    ++rests;
  }
  std::weak_ptr<int> begin_rest() {
    auto held = std::make_shared<int>();
    std::weak_ptr<int> watch = held;
    timer.expires_after(std::chrono::hours(1));
    spawn(context.get_executor(), rest(std::move(held)), [](const std::exception_ptr&) {});
    return watch;
  }
  void turn() {
    context.restart();
    context.poll();
  }

  asio::io_context context{1};
  Pair pair;
  Socket socket{context.get_executor()};
  Timer timer{context.get_executor()};
  std::string bytes = std::string(16, '\0');
  int rests = 0;
};

TEST_F(UseTaskTest, ReturnsTheResultOfTheOperation) {
  Running reading(context, read_some());
  turn();
  EXPECT_FALSE(reading.done());
  send_all(pair.theirs.number(), "abc");
  const auto read = reading.result();
  EXPECT_FALSE(read.ec);
  EXPECT_EQ(bytes.substr(0, read.count), "abc");
}

TEST_F(UseTaskTest, StoresTheErrorOfTheOperation) {
  pair.theirs.close();
  EXPECT_EQ(run(context, read_some()).ec, asio::error::eof);
}

TEST_F(UseTaskTest, CancelledOperationStoresTheErrorOperationAborted) {
  Running reading(context, read_some());
  socket.cancel();
  EXPECT_EQ(reading.result().ec, asio::error::operation_aborted);
}

TEST_F(UseTaskTest, CompletionHandlerDoesNothingAfterItsCoroutineWasDestroyed) {
  const auto watch = begin_rest();
  Reactor::of(context.get_executor()).end_tasks();
  EXPECT_TRUE(watch.expired());
  timer.cancel();
  turn();
  EXPECT_EQ(rests, 0);
}

TEST_F(UseTaskTest, CoroutineMayBeDestroyedAfterTheOperationHasEnded) {
  const auto watch = begin_rest();
  timer.cancel();  // queues the completion handler
  Reactor::of(context.get_executor()).end_tasks();
  EXPECT_TRUE(watch.expired());
  turn();
  EXPECT_EQ(rests, 0);
}

TEST(UseTask, CoroutineAndHandlerAreDestroyedWithTheEventLoop) {
  const auto wait = [](Timer timer, [[maybe_unused]] std::shared_ptr<int> held) -> Task<void> {
    ErrorCode ignored;
    timer.expires_after(std::chrono::hours(1));
    co_await timer.async_wait(use_task(ignored));
  };
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> watch = held;
  {
    asio::io_context context{1};
    spawn(context.get_executor(), wait(Timer(context.get_executor()), std::move(held)),
          [](const std::exception_ptr&) {});
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

Task<std::string> await_failing_start() {
  const auto fail = [](auto&&) { throw std::bad_alloc(); };
  ErrorCode ignored;
  auto token = use_task(ignored);
  try {
    co_await asio::async_initiate<UseTask, void(ErrorCode)>(fail, token);
  } catch (const std::bad_alloc&) {
    co_return "out of memory";
  }
  co_return "";
}

TEST(UseTask, ThrowsTheExceptionThatTheStartOfTheOperationThrew) {
  asio::io_context context{1};
  EXPECT_EQ(run(context, await_failing_start()), "out of memory");
}

}  // namespace
}  // namespace weir::net
