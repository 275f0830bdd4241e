#include "weir/net/stream.hpp"

#include "unit/net/sockets.hpp"

#include <future>
#include <random>

#include <boost/asio/error.hpp>
#include <gtest/gtest.h>

namespace weir::net {
namespace {

std::string random_bytes(std::size_t size) {
  static std::mt19937 random(size);
  std::string bytes(size, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

Task<ErrorCode> read_once(Stream& stream, std::string& got) {
  std::array<char, 64 << 10> piece{};
  ErrorCode ec;
  const auto count = co_await stream.read_some(piece.data(), piece.size(), ec);
  got.append(piece.data(), count);
  co_return ec;
}

Task<ErrorCode> read_to_end(Stream& stream, std::string& got) {
  for (;;) {
    const auto ec = co_await read_once(stream, got);
    if (ec) co_return ec;
  }
}

class PlainStream : public ::testing::Test {
 protected:
  PlainStream() : pair(socket_pair()), stream(context.get_executor(), pair.ours) {}

  [[nodiscard]] int theirs() const { return pair.theirs.number(); }

  asio::io_context context{1};
  Pair pair;
  Stream stream;
};

TEST_F(PlainStream, ReadsBytesAndThenTheEndOfStream) {
  send_all(theirs(), "hello");
  std::string got;
  EXPECT_FALSE(run(context, read_once(stream, got)));
  EXPECT_EQ(got, "hello");
  pair.theirs.close();
  EXPECT_EQ(run(context, read_once(stream, got)), asio::error::eof);
  EXPECT_EQ(got, "hello");
}

TEST_F(PlainStream, TryWriteSendsAsMuchAsFitsIntoTheSocketWithoutAnError) {
  const auto first = random_bytes(1 << 20);
  const auto second = random_bytes(1 << 20);
  ErrorCode ec = asio::error::eof;
  const auto sent = stream.try_write(first, second, ec);
  EXPECT_FALSE(ec);
  EXPECT_GT(sent, 0U);
  EXPECT_LT(sent, first.size());
  EXPECT_EQ(stream.try_rest(std::string_view(first).substr(sent), second, ec), 0U);
  EXPECT_FALSE(ec);
  EXPECT_EQ(receive(theirs(), sent), first.substr(0, sent));
}

TEST_F(PlainStream, TryWriteSendsBothBuffersInOrder) {
  ErrorCode ec;
  EXPECT_EQ(stream.try_write("head", "body", ec), 8U);
  EXPECT_EQ(stream.try_write({}, "more", ec), 4U);
  EXPECT_EQ(stream.try_write({}, {}, ec), 0U);
  EXPECT_FALSE(ec);
  EXPECT_EQ(receive(theirs(), 12), "headbodymore");
}

TEST_F(PlainStream, WriteWaitsWhileTheSocketBufferIsFullAndSendsEverything) {
  for (const std::size_t split : {0UL, 1UL, 3UL << 20, 5UL << 20}) {
    const auto bytes = random_bytes(5 << 20);
    auto reader = std::async(std::launch::async, receive, theirs(), bytes.size());
    const auto view = std::string_view(bytes);
    EXPECT_FALSE(run(context, stream.write(view.substr(0, split), view.substr(split))));
    EXPECT_TRUE(reader.get() == bytes) << split;
  }
}

TEST_F(PlainStream, NewWriteIsRejectedUntilAPartialWriteIsCompleted) {
  const auto text = random_bytes(2 << 20);
  const auto view = std::string_view(text);
  ErrorCode ec;
  const auto sent = stream.try_write(view, {}, ec);
  ASSERT_GT(sent, 0U);
  ASSERT_LT(sent, text.size());
  ASSERT_TRUE(stream.owes_write());
  EXPECT_EQ(stream.try_write("another", {}, ec), 0U);
  EXPECT_EQ(ec, StreamError::WriteOwed);
  EXPECT_EQ(run(context, stream.write("another")), StreamError::WriteOwed);
  EXPECT_EQ(stream.try_rest("shorter than what is owed", {}, ec), 0U);
  EXPECT_EQ(ec, StreamError::WriteOwed);
  auto reader = std::async(std::launch::async, receive, theirs(), text.size() + 4);
  EXPECT_FALSE(run(context, stream.write_rest(view.substr(sent))));
  EXPECT_FALSE(stream.owes_write());
  EXPECT_EQ(stream.try_write("next", {}, ec), 4U);
  EXPECT_TRUE(reader.get() == text + "next");
}

TEST_F(PlainStream, WriteThatSentNothingIsNotPartial) {
  std::string filler;
  while (::send(stream.native_handle(), "filler", 6, MSG_DONTWAIT | MSG_NOSIGNAL) == 6) filler += "filler";
  ErrorCode ec;
  ASSERT_EQ(stream.try_write("never begun", {}, ec), 0U);
  EXPECT_FALSE(ec);
  EXPECT_FALSE(stream.owes_write());
  EXPECT_EQ(receive(theirs(), filler.size()), filler);
  EXPECT_EQ(stream.try_write("another", {}, ec), 7U);
  EXPECT_EQ(receive(theirs(), 7), "another");
}

TEST_F(PlainStream, CancelledWriteIsPartialUntilItsRestIsSent) {
  const auto text = random_bytes(5 << 20);
  Running writing(context, stream.write(text));
  context.poll();
  stream.cancel();
  EXPECT_EQ(writing.result(), asio::error::operation_aborted);
  EXPECT_TRUE(stream.owes_write());
  EXPECT_EQ(run(context, stream.write("another")), StreamError::WriteOwed);
}

TEST_F(PlainStream, PartialWriteStaysPartialAfterTheStreamIsMoved) {
  const auto text = random_bytes(5 << 20);
  ErrorCode ec;
  ASSERT_GT(stream.try_write(text, {}, ec), 0U);
  const Stream moved(std::move(stream));
  EXPECT_TRUE(moved.owes_write());
}

TEST_F(PlainStream, WritingToAClosedPeerGivesAnErrorInsteadOfSigpipe) {
  pair.theirs.close();
  ErrorCode ec;
  EXPECT_EQ(stream.try_write("x", {}, ec), 0U);
  EXPECT_EQ(ec, asio::error::broken_pipe);
  EXPECT_EQ(run(context, stream.write("x")), asio::error::broken_pipe);
}

TEST_F(PlainStream, DetectsWithoutAReadThatThePeerHasLeft) {
  EXPECT_FALSE(stream.peer_left());
  send_all(theirs(), "unread");
  EXPECT_FALSE(stream.peer_left());
  ::shutdown(theirs(), SHUT_WR);
  context.poll();
  EXPECT_TRUE(stream.peer_left());
  std::string got;
  EXPECT_EQ(run(context, read_to_end(stream, got)), asio::error::eof);
  EXPECT_EQ(got, "unread");
}

TEST_F(PlainStream, ShutdownSendClosesOnlyTheSendingDirection) {
  stream.shutdown_send();
  EXPECT_EQ(receive(theirs()), "");
  send_all(theirs(), "late");
  std::string got;
  EXPECT_FALSE(run(context, read_once(stream, got)));
  EXPECT_EQ(got, "late");
}

TEST_F(PlainStream, CancelEndsReadAndWriteWaits) {
  std::string got;
  Running reading(context, read_once(stream, got));
  context.poll();
  ASSERT_FALSE(reading.done());
  stream.cancel();
  EXPECT_EQ(reading.result(), asio::error::operation_aborted);

  const auto much = random_bytes(5 << 20);
  Running writing(context, stream.write(much));
  context.restart();
  context.poll();
  ASSERT_FALSE(writing.done());
  stream.cancel();
  EXPECT_EQ(writing.result(), asio::error::operation_aborted);
}

TEST_F(PlainStream, WaitReadableReturnsWhenBytesHaveArrivedAndDoesNotReadThem) {
  Running waiting(context, until_readable(stream));
  context.poll();
  EXPECT_FALSE(waiting.done());
  send_all(theirs(), "x");
  EXPECT_FALSE(waiting.result());
  std::string got;
  EXPECT_FALSE(run(context, read_once(stream, got)));
  EXPECT_EQ(got, "x");
}

TEST_F(PlainStream, WriteAfterCloseSendsNothing) {
  stream.close();
  EXPECT_FALSE(stream.is_open());
  stream.shutdown_send();
  ErrorCode ec;
  EXPECT_EQ(stream.try_write("x", {}, ec), 0U);
  EXPECT_TRUE(ec);
}

}  // namespace
}  // namespace weir::net
