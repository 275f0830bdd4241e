// Tests a store whose proxy to Redis delays replies or loses a reply.
#include "unit/redis/store/store_fixture.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Protocol = net::asio::local::stream_protocol;

struct Trouble {
  std::chrono::milliseconds delay{};  // delay of every reply; replies keep their order
  bool loses = false;                 // true: the proxy drops the next data that Redis sends
};

// A client's connection to the proxy, and the proxy's connection to Redis.
class Carried : public std::enable_shared_from_this<Carried> {
 public:
  Carried(Protocol::socket client, const std::string& target, std::shared_ptr<Trouble> trouble)
      : client_(std::move(client)), server_(client_.get_executor()), trouble_(std::move(trouble)) {
    server_.connect(Protocol::endpoint(target));
  }
  void begin() {
    carry_question();
    carry_answer();
  }

 private:
  void carry_question() {
    client_.async_read_some(net::asio::buffer(question_),
                            [self = shared_from_this()](net::ErrorCode ec, std::size_t n) {
                              if (ec) return self->end();
                              net::asio::write(self->server_, net::asio::buffer(self->question_, n), ec);
                              self->carry_question();
                            });
  }
  void carry_answer() {
    server_.async_read_some(net::asio::buffer(answer_),
                            [self = shared_from_this()](net::ErrorCode ec, std::size_t n) {
                              if (ec) return self->end();
                              if (!std::exchange(self->trouble_->loses, false))
                                self->deliver(std::string(self->answer_.data(), n));
                              self->carry_answer();
                            });
  }
  void deliver(std::string bytes) {
    auto timer = std::make_shared<net::asio::steady_timer>(client_.get_executor(), trouble_->delay);
    timer->async_wait([self = shared_from_this(), timer, bytes = std::move(bytes)](net::ErrorCode ec) {
      net::asio::write(self->client_, net::asio::buffer(bytes), ec);
    });
  }
  void end() {
    client_.close();
    server_.close();
  }

  Protocol::socket client_, server_;
  std::shared_ptr<Trouble> trouble_;  // shared with the proxy, which may be destroyed before its connections
  std::array<char, 65536> question_, answer_;
};

// A proxy between weir and Redis. Delays or drops replies as trouble() says.
class Way {
 public:
  Way(net::asio::io_context& loop, const std::string& path, std::string target)
      : acceptor_(loop, Protocol::endpoint(path)), target_(std::move(target)) {
    accept();
  }
  [[nodiscard]] Trouble& trouble() noexcept { return *trouble_; }

 private:
  void accept() {
    acceptor_.async_accept([this](net::ErrorCode ec, Protocol::socket client) {
      if (ec) return;
      std::make_shared<Carried>(std::move(client), target_, trouble_)->begin();
      accept();
    });
  }

  Protocol::acceptor acceptor_;
  const std::string target_;
  const std::shared_ptr<Trouble> trouble_ = std::make_shared<Trouble>();
};

class FaultyNetwork : public ::testing::Test {
 protected:
  RedisSettings settings() {
    auto settings = Worker::settings_for(server_);
    settings.address.unix_path += "-way";
    return settings;
  }
  Server server_;
  const limit::Limiter one_an_hour_ = gcra({1, 1h}, 0);
  const std::vector<limit::Charge> spent_ = {{{1, 1}, &one_an_hour_}};
  const std::vector<limit::Charge> fresh_ = {{{2, 2}, &one_an_hour_}};
  const std::vector<limit::Charge> other_ = {{{3, 3}, &one_an_hour_}};
  Worker worker_{settings()};
  Way way_{worker_.loop, settings().address.unix_path, server_.path()};
};

// A request begins every 3 ms and its reply takes 600 ms, so Pipeline::kBusyCalls calls soon wait for
// replies. weir must still send each further request at once. If it first waited for a reply, the request
// would take up to 1.2 s and time out.
TEST_F(FaultyNetwork, RequestsDoNotTimeOutIfTheRoundTripToRedisIsLong) {
  way_.trouble().delay = 600ms;  // the delay is less than the timeout, which is 1 s
  ASSERT_TRUE(worker_.turn_until_up()) << worker_.store.last_error();
  std::array<Answer, 20> answers;
  for (auto& answer : answers) {
    worker_.begin(spent_, answer);
    worker_.loop.restart();
    worker_.loop.run_for(3ms);
  }
  ASSERT_TRUE(worker_.turn_until([&] { return std::ranges::all_of(answers, &Answer::done); }));
  for (const auto& answer : answers) EXPECT_FALSE(answer.error) << answer.error.message();
}

TEST_F(FaultyNetwork, AfterALostReplyNoCallGetsTheReplyToAnotherCall) {
  ASSERT_TRUE(worker_.turn_until_up());
  ASSERT_TRUE(worker_.charge(spent_).outcomes[0].allowed);
  std::array<Answer, 3> answers;
  way_.trouble().loses = true;
  worker_.begin(fresh_, answers[0]);
  ASSERT_TRUE(worker_.turn_until([&] { return !way_.trouble().loses; }));
  worker_.begin(spent_, answers[1]);
  worker_.loop.poll();
  worker_.begin(other_, answers[2]);
  ASSERT_TRUE(worker_.turn_until([&] { return std::ranges::all_of(answers, &Answer::done); }));
  EXPECT_EQ(answers[0].error, StoreError::ConnectionLost);
  EXPECT_EQ(answers[1].error, StoreError::ConnectionLost);
  EXPECT_TRUE(answers[2].error);
  EXPECT_THAT(worker_.log, Contains(HasSubstr("is down: bad_reply, an unexpected reply")));
  ASSERT_TRUE(worker_.turn_until_up());
  EXPECT_FALSE(worker_.charge(spent_).outcomes[0].allowed);
}

TEST_F(FaultyNetwork, LostReplyToARefundClosesTheConnection) {
  ASSERT_TRUE(worker_.turn_until_up());
  const auto charged = worker_.charge(spent_);
  way_.trouble().loses = true;
  worker_.store.refund(spent_[0], charged.now);
  ASSERT_TRUE(worker_.turn_until([&] { return !way_.trouble().loses; }));
  EXPECT_EQ(worker_.charge(fresh_).error, StoreError::ConnectionLost);
  EXPECT_THAT(worker_.log, Contains(HasSubstr("is down: bad_reply")));
  // Two losses are counted: the refund, and the charge that was unanswered when the connection closed.
  EXPECT_EQ(worker_.store.stats().refunds_lost.load(), 2U);
}

}  // namespace
}  // namespace weir::redis
