#include "weir/net/reactor.hpp"

#include "unit/net/sockets.hpp"

#include "weir/net/signal.hpp"
#include "weir/net/use_task.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <sys/eventfd.h>
#include <sys/resource.h>

namespace weir::net {
namespace {

class ReactorTest : public ::testing::Test {
 protected:
  ReactorTest() : pair(socket_pair()), ours(pair.ours) {
    port = std::make_unique<Port>(Reactor::of(context.get_executor()), ours.number());
  }
  Task<ErrorCode> until_readable() { co_return co_await port->readable(); }
  Task<ErrorCode> until_writable() { co_return co_await port->writable(); }
  void turn() {
    context.restart();
    context.poll();
  }

  asio::io_context context{1};
  Pair pair;
  Descriptor ours;
  std::unique_ptr<Port> port;
};

TEST_F(ReactorTest, ReceivedBytesWakeAWaitingReaderOnce) {
  Running reading(context, until_readable());
  turn();
  EXPECT_FALSE(reading.done());
  send_all(pair.theirs.number(), "x");
  EXPECT_FALSE(reading.result());
  EXPECT_TRUE(port->may_read());
  port->drained();
  EXPECT_FALSE(port->may_read());
  Running again(context, until_readable());
  turn();
  EXPECT_FALSE(again.done()) << "the same bytes woke the reader twice";
  send_all(pair.theirs.number(), "y");
  EXPECT_FALSE(again.result());
}

// After a short read, the next read must not wait if epoll reported the bytes and the end of the stream
// together.
TEST_F(ReactorTest, ReaderNeverWaitsAfterThePeerClosed) {
  send_all(pair.theirs.number(), "last");
  pair.theirs.close();
  turn();
  EXPECT_TRUE(port->hung_up());
  port->drained();
  EXPECT_TRUE(port->may_read());
  EXPECT_FALSE(run(context, until_readable()));
}

// Descriptors that are readable from the beginning, each with a Port and a coroutine. When a coroutine
// resumes, it notes Reactor::polls(): how often the kernel has reported all its events.
class ReadyPorts {
 public:
  ReadyPorts(asio::io_context& context, int count) {
    auto& reactor = Reactor::of(context.get_executor());
    for (int i = 0; i < count; ++i) {
      events_.emplace_back(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
      ports_.push_back(std::make_unique<Port>(reactor, events_.back().number()));
      spawn(context.get_executor(), note(*ports_.back(), reactor), [](const std::exception_ptr&) {});
    }
  }
  [[nodiscard]] const std::vector<std::uint64_t>& polls() const noexcept { return polls_; }

 private:
  Task<void> note(Port& port, Reactor& reactor) {
    (void)co_await port.readable();
    polls_.push_back(reactor.polls());
  }

  std::vector<Descriptor> events_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<std::uint64_t> polls_;
};

// A call of epoll_wait() returns at most 128 events, because Asio's array has no more room.
TEST_F(ReactorTest, KernelIsPolledAgainIfMoreEventsAreReadyThanTheArrayHolds) {
  const ReadyPorts many(context, 300);
  const auto before = Reactor::of(context.get_executor()).polls();
  turn();
  ASSERT_EQ(many.polls().size(), 300U);
  EXPECT_EQ(many.polls().front(), before + 1) << "the first coroutine ran before all ports knew their events";
}

// A turn of the event loop calls epoll_wait() at most 16 times, for 128 events each: 2,048 in all. So 52 of
// this test's 2,100 events stay in the kernel, and their ports learn of them only in the next turn.
TEST_F(ReactorTest, PollIsCompleteOnlyWhenTheKernelHasNoMoreEvents) {
  constexpr int kMany = 2100;
  rlimit descriptors{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &descriptors), 0);
  descriptors.rlim_cur = std::max<rlim_t>(descriptors.rlim_cur, kMany + 200);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &descriptors), 0) << "the test needs " << kMany << " descriptors";
  const ReadyPorts many(context, kMany);
  const auto before = Reactor::of(context.get_executor()).polls();
  turn();
  ASSERT_EQ(many.polls().size(), std::size_t{kMany});
  EXPECT_EQ(many.polls().front(), before) << "some ports have not heard yet";
  EXPECT_EQ(many.polls().back(), before + 1);
}

TEST_F(ReactorTest, NewSocketThatIsWritableDoesNotWakeTheWorker) {
  EXPECT_EQ(context.poll(), 0U);
}

TEST_F(ReactorTest, WriterIsWokenIfTheSocketBecameWritableBeforeTheWait) {
  port->filled();
  EXPECT_FALSE(run(context, until_writable()));
}

TEST_F(ReactorTest, WriterWaitsUntilTheSocketIsWritable) {
  const std::string much(4 << 20, 'x');
  ASSERT_LT(::send(ours.number(), much.data(), much.size(), MSG_DONTWAIT), ssize_t(much.size()));
  ASSERT_LT(::send(ours.number(), "x", 1, MSG_DONTWAIT), 0);
  turn();
  port->filled();
  Running writing(context, until_writable());
  turn();
  EXPECT_FALSE(writing.done());
  std::string taken(1 << 16, '\0');
  while (::recv(pair.theirs.number(), taken.data(), taken.size(), MSG_DONTWAIT) > 0) continue;
  EXPECT_FALSE(writing.result());
}

TEST_F(ReactorTest, CancelEndsTheWaitsOfReaderAndWriterButNoLaterWait) {
  port->filled();
  turn();
  port->filled();
  Running reading(context, until_readable());
  Running writing(context, until_writable());
  port->cancel();
  EXPECT_FALSE(reading.done()) << "the wait was resumed within cancel()";
  EXPECT_EQ(reading.result(), asio::error::operation_aborted);
  EXPECT_EQ(writing.result(), asio::error::operation_aborted);
  Running again(context, until_readable());
  turn();
  EXPECT_FALSE(again.done());
  port->cancel();
  EXPECT_EQ(again.result(), asio::error::operation_aborted);
}

TEST_F(ReactorTest, DestroyingAPortObjectEndsItsReadAndWriteWaits) {
  Running reading(context, until_readable());
  port.reset();
  EXPECT_EQ(reading.result(), asio::error::operation_aborted);
}

// Both sockets are ready in one turn of the event loop. The coroutine that is resumed first destroys the Port
// object of the other coroutine.
TEST_F(ReactorTest, FirstResumedCoroutineMayDestroyThePortObjectOfAnotherReadyCoroutine) {
  auto other = socket_pair();
  const Descriptor other_end(other.ours);
  auto second = std::make_unique<Port>(Reactor::of(context.get_executor()), other_end.number());
  int resumed = 0;
  const auto end_other = [&](Port& mine, std::unique_ptr<Port>& theirs) -> Task<void> {
    const auto ec = co_await mine.readable();
    ++resumed;
    if (!ec) theirs.reset();
  };
  const auto nothing = [](const std::exception_ptr&) {};
  spawn(context.get_executor(), end_other(*port, second), nothing);
  spawn(context.get_executor(), end_other(*second, port), nothing);
  send_all(pair.theirs.number(), "x");
  send_all(other.theirs.number(), "x");
  ASSERT_TRUE(turn_until(context, [&] { return resumed == 2; }));
  EXPECT_NE(port == nullptr, second == nullptr);
}

// One call of epoll_wait() reports the events of both ports.
TEST_F(ReactorTest, EveryPortObjectKnowsItsEventBeforeACoroutineIsResumed) {
  auto other = socket_pair();
  const Descriptor other_end(other.ours);
  Port second(Reactor::of(context.get_executor()), other_end.number());
  std::vector<bool> known;
  const auto ask_other = [&](Port& mine, const Port& theirs) -> Task<void> {
    (void)co_await mine.readable();
    known.push_back(theirs.may_read());
  };
  const auto nothing = [](const std::exception_ptr&) {};
  spawn(context.get_executor(), ask_other(*port, second), nothing);
  spawn(context.get_executor(), ask_other(second, *port), nothing);
  send_all(pair.theirs.number(), "x");
  send_all(other.theirs.number(), "x");
  ASSERT_TRUE(turn_until(context, [&] { return known.size() == 2; }));
  EXPECT_EQ(known, std::vector<bool>(2, true));
}

// An event of Asio's descriptor and an event of a Port arrive together. The coroutine that the Port resumes
// closes Asio's descriptor.
TEST_F(ReactorTest, CoroutineMayCloseAnAsioDescriptorThatIsReadyInTheSameEventLoopIteration) {
  auto other = socket_pair();
  Socket by_asio(context, Socket::protocol_type(AF_UNIX, 0), other.ours);
  bool resumed = false;
  bool ended = false;
  by_asio.async_wait(Socket::wait_read, [&](const ErrorCode&) { ended = true; });
  const auto close_other = [&]() -> Task<void> {
    (void)co_await port->readable();
    resumed = true;
    by_asio.close();
  };
  spawn(context.get_executor(), close_other(), [](const std::exception_ptr&) {});
  turn();
  send_all(other.theirs.number(), "x");
  send_all(pair.theirs.number(), "x");
  ASSERT_TRUE(turn_until(context, [&] { return resumed && ended; }));
}

// Workers, and the thread of the admin pages, have an io_context each.
TEST_F(ReactorTest, PortObjectLearnsOfEventsOnlyFromItsOwnIoContext) {
  asio::io_context second(1);
  auto other = socket_pair();
  const Descriptor other_end(other.ours);
  auto& reactor = Reactor::of(second.get_executor());
  Port other_port(reactor, other_end.number());
  send_all(pair.theirs.number(), "x");
  send_all(other.theirs.number(), "x");
  turn();
  EXPECT_TRUE(port->may_read());
  EXPECT_FALSE(other_port.may_read());
  EXPECT_EQ(reactor.polls(), 0U);
  second.poll();
  EXPECT_TRUE(other_port.may_read());
  EXPECT_EQ(reactor.polls(), 1U);
}

TEST_F(ReactorTest, WaitFailsAtOnceIfTheSocketCannotBeRegistered) {
  Port none(Reactor::of(context.get_executor()), -1);
  EXPECT_EQ(run(context, [](Port& p) -> Task<ErrorCode> { co_return co_await p.readable(); }(none)),
            asio::error::bad_descriptor);
}

TEST_F(ReactorTest, EventLoopEndsAfterTheLastPortObjectIsDestroyed) {
  port.reset();
  context.restart();
  context.run();  // returns, because no work is left
}

// Without work, Asio would stop the io_context at once, and a later run() would do nothing.
TEST_F(ReactorTest, EventLoopRunsEvenIfTheLastPortObjectWasDestroyedBeforeTheLoopStarted) {
  port.reset();
  bool ran = false;
  asio::post(context, [&] { ran = true; });
  context.run();
  EXPECT_TRUE(ran);
}

TEST(ReactorEnd, WaitingTasksAreDestroyedWithTheEventLoop) {
  auto pair = socket_pair();
  const Descriptor ours(pair.ours);
  const auto kept = std::make_shared<int>(1);
  {
    asio::io_context context(1);
    const auto wait = [](Executor executor, int fd, std::shared_ptr<int>) -> Task<void> {
      Port port(Reactor::of(executor), fd);
      (void)co_await port.readable();
    };
    spawn(context.get_executor(), wait(context.get_executor(), ours.number(), kept),
          [](const std::exception_ptr&) {});
    EXPECT_EQ(kept.use_count(), 2);
  }
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(SignalTest, RaisedSignalStaysRaisedAndTheEventLoopResumesItsWaiter) {
  asio::io_context context(1);
  Signal signal(context.get_executor());
  const auto wait = [](Signal& s) -> Task<bool> {
    co_await s.wait();
    co_return true;
  };
  Running waiting(context, wait(signal));
  signal.raise();
  EXPECT_FALSE(waiting.done()) << "the wait was resumed within raise()";
  EXPECT_TRUE(waiting.result());
  EXPECT_TRUE(run(context, wait(signal))) << "the signal was raised before the wait";
}

Task<ErrorCode> next_of(Notification& event) {
  co_return co_await event.wait();
}

TEST(NotificationTest, NotifyEndsOnlyTheCurrentWaitAndTheEventLoopResumesTheWaiter) {
  asio::io_context context(1);
  Notification event(context.get_executor());
  event.notify();  // the notification is lost, because nobody waits
  Running first(context, next_of(event));
  EXPECT_FALSE(first.done());
  event.notify();
  EXPECT_FALSE(first.done()) << "resumed from within notify()";
  EXPECT_EQ(first.result(), ErrorCode{});
  Running second(context, next_of(event));
  context.poll();
  EXPECT_FALSE(second.done()) << "an earlier notification ended a later wait";
  event.notify();
  EXPECT_EQ(second.result(), ErrorCode{});
}

TEST(NotificationTest, CancelledWaitReturnsOperationAborted) {
  asio::io_context context(1);
  Notification event(context.get_executor());
  Running waiting(context, next_of(event));
  event.cancel();
  event.notify();  // too late: the wait has ended
  EXPECT_EQ(waiting.result(), asio::error::operation_aborted);
}

TEST(NotificationTest, NotifyAfterItsWaiterWasDestroyedDoesNothing) {
  asio::io_context owner(1);
  Notification event(owner.get_executor());
  {
    asio::io_context context(1);
    const auto wait = [](Notification& e) -> Task<void> { (void)co_await e.wait(); };
    spawn(context.get_executor(), wait(event), [](const std::exception_ptr&) {});
    context.poll();
  }
  event.notify();
}

// A task that always has more work must await a Pause, so that other tasks can run.
TEST(PauseTest, PauseLetsOtherTasksRun) {
  asio::io_context context{1};
  std::string turns;
  const auto work = [](Executor executor, std::string& log, char name) -> Task<void> {
    for (int i = 0; i < 3; ++i) {
      log += name;
      co_await Pause(executor);
    }
  };
  for (const char name : {'a', 'b'})
    spawn(context.get_executor(), work(context.get_executor(), turns, name),
          [](const std::exception_ptr&) {});
  asio::post(context, [&] { turns += '.'; });
  context.run();
  EXPECT_EQ(turns, "abab.ab");
}

TEST(PauseTest, PausedTaskCanBeDestroyedWithTheEventLoop) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  {
    asio::io_context context{1};
    const auto pause = [](Executor executor, std::shared_ptr<int>) -> Task<void> {
      co_await Pause(executor);
    };
    spawn(context.get_executor(), pause(context.get_executor(), std::move(held)),
          [](const std::exception_ptr&) {});
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(SpawnTest, CallbackGetsTheExceptionThatEndedTheTask) {
  asio::io_context context(1);
  std::string told;
  const auto fail = [](Timer timer) -> Task<void> {
    timer.expires_after(std::chrono::milliseconds(1));
    ErrorCode ignored;
    co_await timer.async_wait(use_task(ignored));
    throw std::runtime_error("broken");
  };
  spawn(context.get_executor(), fail(Timer(context.get_executor())), [&](const std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      told = error.what();
    }
  });
  EXPECT_TRUE(turn_until(context, [&] { return !told.empty(); }));
  EXPECT_EQ(told, "broken");
}

}  // namespace
}  // namespace weir::net
