#include "unit/upstream/http2_memory.hpp"

namespace weir::upstream {
namespace {

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: b\r\n\r\n";
constexpr std::string_view kPost = "POST / HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST_F(Http2InMemory, CallerWritesTheRequestAndReadsTheResponseAsHttp1Text) {
  connect();
  exchange();
  Http2ServerStream stream(connection);
  net::ErrorCode ec;
  EXPECT_EQ(stream.try_write(kGet, {}, ec), kGet.size());
  exchange();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[1].fields, ":method=GET\n:scheme=http\n:path=/a\n:authority=b\n");
  EXPECT_TRUE(requests[1].ended);
  requests[1].response = "hello";
  requests[1].response_trailers.add("grpc-status", "0");
  answer(1, 200, true);
  exchange();
  EXPECT_EQ(read(stream, ec), "HTTP/1.1 200 OK\r\n\r\n5\r\nhello\r\n0\r\ngrpc-status: 0\r\n\r\n");
  EXPECT_EQ(ec, net::asio::error::eof);
}

TEST_F(Http2InMemory, BodyWaitsForTheFlowControlWindowOfTheServer) {
  connect();
  exchange();
  Http2ServerStream stream(connection);
  net::ErrorCode ec;
  ASSERT_EQ(stream.try_write(kPost, {}, ec), kPost.size());
  const std::string chunk = "20000\r\n" + std::string(0x20000, 'x') + "\r\n";
  std::string_view rest = chunk;
  rest.remove_prefix(stream.try_rest(rest, {}, ec));
  exchange();
  EXPECT_EQ(requests[1].body.size(), 1000U) << "the server's window is full";
  rest.remove_prefix(stream.try_rest(rest, {}, ec));
  exchange();
  EXPECT_EQ(stream.try_rest(rest, {}, ec), 0U) << "the memory of the stream is full";
  EXPECT_FALSE(ec);
  server.consume(1, 1000);
  exchange();
  EXPECT_EQ(requests[1].body.size(), 2000U);
  EXPECT_GT(stream.try_rest(rest, {}, ec), 0U);
}

TEST_F(Http2InMemory, StreamThatTheServerRefusesIsReportedAsRefused) {
  refuses = true;
  connect();
  exchange();
  Http2ServerStream stream(connection);
  net::ErrorCode ec;
  (void)stream.try_write(kPost, "3\r\nabc\r\n", ec);
  exchange();
  EXPECT_EQ(read(stream, ec), "");
  EXPECT_EQ(ec, net::asio::error::connection_reset);
  EXPECT_EQ(stream.broke_by(), ExchangeFailure::Refusal);
  EXPECT_TRUE(connection->has_room()) << "the connection goes on";
}

TEST_F(Http2InMemory, StreamThatTheServerResetsIsReportedAsReset) {
  connect();
  exchange();
  Http2ServerStream stream(connection);
  net::ErrorCode ec;
  (void)stream.try_write(kGet, {}, ec);
  exchange();
  server.reset(1, http::Http2Error::Internal);
  exchange();
  EXPECT_EQ(read(stream, ec), "");
  EXPECT_EQ(ec, net::asio::error::connection_reset);
  EXPECT_EQ(stream.broke_by(), ExchangeFailure::Reset);
}

TEST_F(Http2InMemory, StreamsOfAnEndedConnectionReportABrokenConnection) {
  connect();
  exchange();
  Http2ServerStream stream(connection);
  net::ErrorCode ec;
  (void)stream.try_write(kGet, {}, ec);
  exchange();
  octets.end();
  exchange();
  EXPECT_EQ(read(stream, ec), "");
  EXPECT_EQ(ec, net::asio::error::eof);
  EXPECT_EQ(stream.broke_by(), ExchangeFailure::Connection);
}

TEST_F(Http2InMemory, ServerMayHaveClosedAnIdleConnectionBeforeAnyRequestOfABurstArrived) {
  connect();
  exchange();
  Http2ServerStream first(connection);
  Http2ServerStream second(connection);
  net::ErrorCode ec;
  (void)first.try_write(kGet, {}, ec);
  (void)second.try_write(kGet, {}, ec);
  octets.end();
  run();
  EXPECT_TRUE(first.may_have_met_idle_close());
  EXPECT_TRUE(second.may_have_met_idle_close())
      << "the first request does not prove that the server is there";
}

TEST_F(Http2InMemory, ServerDidNotCloseTheConnectionAsIdleIfAnotherRequestWasOpen) {
  connect();
  exchange();
  Http2ServerStream first(connection);
  net::ErrorCode ec;
  (void)first.try_write(kGet, {}, ec);
  exchange();
  server.ping();
  exchange();
  Http2ServerStream second(connection);
  (void)second.try_write(kGet, {}, ec);
  octets.end();
  run();
  EXPECT_FALSE(first.may_have_met_idle_close());
  EXPECT_FALSE(second.may_have_met_idle_close()) << "the first request was open when the server sent a PING";
}

TEST_F(Http2InMemory, ServerDidNotCloseTheConnectionAsIdleIfItSentAFrameAfterTheRequest) {
  connect();
  exchange();
  Http2ServerStream stream(connection);
  net::ErrorCode ec;
  (void)stream.try_write(kGet, {}, ec);
  exchange();
  EXPECT_TRUE(stream.may_have_met_idle_close());
  server.ping();
  exchange();
  octets.end();
  run();
  EXPECT_FALSE(stream.may_have_met_idle_close());
}

TEST_F(Http2InMemory, ConnectionIsIdleOnceItsRequestsHaveEnded) {
  connect();
  exchange();
  Http2ServerStream first(connection);
  net::ErrorCode ec;
  (void)first.try_write(kGet, {}, ec);
  exchange();
  answer(1, 204, false);
  exchange();
  Http2ServerStream second(connection);
  (void)second.try_write(kGet, {}, ec);
  octets.end();
  run();
  EXPECT_TRUE(second.may_have_met_idle_close());
}

TEST_F(Http2InMemory, StreamsAboveTheLastStreamIdOfAGoawayAreReportedAsRefusedByTheServer) {
  connect();
  exchange();
  Http2ServerStream first(connection);
  Http2ServerStream second(connection);
  net::ErrorCode ec;
  (void)first.try_write(kGet, {}, ec);
  (void)second.try_write(kGet, {}, ec);
  exchange();
  server.go_away_after(1);
  exchange();
  (void)read(second, ec);
  EXPECT_EQ(second.broke_by(), ExchangeFailure::Refusal);
  EXPECT_FALSE(connection->has_room());
  answer(1, 204, false);
  exchange();
  EXPECT_EQ(read(first, ec), "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(ec, net::asio::error::eof);
}

TEST_F(Http2InMemory, GoawayOnANewConnectionIsReportedAsARefusal) {
  connect();
  Http2ServerStream stream(connection);
  net::Running<net::ErrorCode> waiting(context, stream.connected());
  server.go_away_after(0);
  exchange();
  EXPECT_TRUE(is_refusal(waiting.result()));
}

TEST_F(Http2InMemory, GoawayAndCloseOfANewConnectionAreReportedAsARefusal) {
  connect();
  Http2ServerStream stream(connection);
  net::Running<net::ErrorCode> waiting(context, stream.connected());
  server.go_away_after(0);
  run();
  std::string greeting;
  server.write(greeting, 1000);
  octets.deliver(greeting);
  octets.end();
  EXPECT_TRUE(is_refusal(waiting.result()));
}

TEST_F(Http2InMemory, ServerThatDoesNotSpeakHttp2IsReportedAsAnErrorAndNotAsARefusal) {
  connect();
  Http2ServerStream stream(connection);
  net::Running<net::ErrorCode> waiting(context, stream.connected());
  run();
  octets.deliver("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  const auto error = waiting.result();
  EXPECT_TRUE(error);
  EXPECT_FALSE(is_refusal(error));
}

TEST_F(Http2InMemory, ConnectionIsCountedOnlyForItsFirstRequest) {
  connect();
  EXPECT_TRUE(connection->mark_used());
  EXPECT_FALSE(connection->mark_used());
}

TEST_F(Http2InMemory, NumberOfOpenStreamsIsBoundedByTheSettingsOfTheServer) {
  connect();
  exchange();
  Http2ServerStream first(connection);
  EXPECT_TRUE(connection->has_room());
  Http2ServerStream second(connection);
  EXPECT_FALSE(connection->has_room());
}

TEST_F(Http2InMemory, StreamIsResetIfTheCallerLeavesBeforeTheResponse) {
  connect();
  exchange();
  {
    Http2ServerStream stream(connection);
    net::ErrorCode ec;
    (void)stream.try_write(kGet, {}, ec);
    exchange();
  }
  exchange();
  EXPECT_EQ(requests[1].closed, http::Http2Error::Cancel);
  EXPECT_EQ(connection->streams(), 0U);
}

}  // namespace
}  // namespace weir::upstream
