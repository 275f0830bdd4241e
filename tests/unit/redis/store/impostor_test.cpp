// Tests servers that are not Redis, and servers that reject every connection.
#include "unit/redis/store/store_fixture.hpp"

#include <string>
#include <utility>
#include <vector>

#include <boost/asio/local/stream_protocol.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using ::testing::HasSubstr;

// A server that is not Redis. The server sends `answer` to each new client, byte by byte, and reads nothing.
class Impostor {
 public:
  Impostor(net::asio::io_context& loop, const std::string& path, std::string answer, bool hangs_up = false)
      : acceptor_(loop, net::asio::local::stream_protocol::endpoint(path)),
        answer_(std::move(answer)),
        hangs_up_(hangs_up) {
    accept();
  }

 private:
  using Peer = net::asio::local::stream_protocol::socket;
  void accept() {
    acceptor_.async_accept([this](net::ErrorCode ec, Peer peer) {
      if (ec) return;
      peers_.push_back(std::move(peer));
      for (const char& byte : answer_) {
        net::ErrorCode ignored;
        peers_.back().write_some(net::asio::buffer(&byte, 1), ignored);
      }
      if (hangs_up_) peers_.pop_back();
      accept();
    });
  }
  net::asio::local::stream_protocol::acceptor acceptor_;
  std::string answer_;
  bool hangs_up_;
  std::vector<Peer> peers_;
};

TEST(StrangeServer, ServerThatIsNotRedisIsRejected) {
  Server folder;  // the test uses only the server's folder, not the server
  auto settings = Worker::settings_for(folder);
  settings.address.unix_path += "-of-another";
  Worker worker(settings);
  Impostor impostor(worker.loop, settings.address.unix_path, "HTTP/1.1 400 Bad Request\r\n\r\n");
  ASSERT_TRUE(worker.turn_until(
      [&] { return worker.store.last_error() == "the peer does not speak the Redis protocol"; }));
  const limit::Limiter limiter = token_bucket({10, 1h}, 10);
  EXPECT_EQ(worker.charge({{{1, 1}, &limiter}}).error, StoreError::Away);
}

// The server sends the error `said` to each new client, then closes the connection.
TEST(StrangeServer, ReportsWhyAServerRejectsAllConnections) {
  Server folder;
  auto settings = Worker::settings_for(folder);
  for (const std::string said : {"DENIED Redis is running in protected mode",
                                 "ERR max number of clients reached", "NOAUTH Authentication"}) {
    settings.address.unix_path += "-of-another";
    Worker worker(settings);
    Impostor impostor(worker.loop, settings.address.unix_path, "-" + said + "\r\n", true);
    ASSERT_TRUE(worker.turn_until([&] { return worker.store.last_error() == said; }))
        << worker.store.last_error();
  }
}

TEST(StrangeServer, UnexpectedReplyClosesTheConnection) {
  Server folder;
  auto settings = Worker::settings_for(folder);
  settings.address.unix_path += "-of-another";
  Worker worker(settings);
  Impostor impostor(worker.loop, settings.address.unix_path,
                    "+OK\r\n$40\r\n0123456789012345678901234567890123456789\r\n"
                    "$40\r\n0123456789012345678901234567890123456789\r\n"
                    "*6\r\n:1\r\n:1\r\n:0\r\n:0\r\n:0\r\n:1\r\n*2\r\n:1\r\n:2\r\n");
  ASSERT_TRUE(worker.turn_until([&] { return worker.log.size() >= 2; }));
  EXPECT_THAT(worker.log[0], HasSubstr("is up"));
  EXPECT_THAT(worker.log[1], HasSubstr("bad_reply, the peer does not speak the Redis protocol"));
}

}  // namespace
}  // namespace weir::redis
