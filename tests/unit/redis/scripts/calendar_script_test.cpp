// Tests windows of a calendar: weir sends the starts and ends of three windows, and Redis's clock selects one
// of them.
#include "unit/limit/random_case.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"
#include "unit/redis/store/store_fixture.hpp"

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

namespace weir::redis {
namespace {

using limit::FixedWindow;
using limit::Outcome;

constexpr base::TimePoint kNoon{std::chrono::sys_days{std::chrono::year{2027} / 1 / 15} + 12h};

std::shared_ptr<const limit::Calendar> utc() {
  const limit::Calendar::Run run{-1, 0s};
  return std::make_shared<limit::Calendar>("UTC", std::span(&run, 1));
}

limit::Limiter calendar(FixedWindow::Align align, std::uint64_t count = 2) {
  return FixedWindow::make(count, align, utc()).value();
}

class CalendarScript : public ::testing::Test {
 protected:
  Server server_;
  TimedScripts scripts_{server_};
  limit::Limiter daily_ = calendar(FixedWindow::Align::Day);
  limit::Limiter bucket_ = token_bucket({1, 1h}, 1);
  std::vector<limit::Charge> bill_ = {{limit::key_of(1), &daily_}};
  std::vector<Outcome> outcomes_ = std::vector<Outcome>(2);
  base::TimePoint then_{};

  ReplyReading ask(base::TimePoint now, base::Duration error) {
    scripts_.set_clock(now);
    scripts_.set_error(error);
    return read_outcomes(scripts_.charge(bill_), bill_, std::span(outcomes_).first(bill_.size()), then_);
  }
};

TEST_F(CalendarScript, TimeOfRedisChoosesTheDay) {
  auto now = kNoon;
  for (const auto error : {0h, -24h, 24h, -12h, 12h}) {  // weir's clock is wrong by up to a day
    ASSERT_EQ(ask(now, error), ReplyReading::Answer) << error.count();
    EXPECT_EQ(outcomes_[0].remaining, 1U);
    EXPECT_EQ(outcomes_[0].reset_after, 12h);
    now += 24h;
  }
}

// 15 January 2027 is a Friday, so the week ends after two and a half days.
TEST_F(CalendarScript, TimeOfRedisChoosesTheWeek) {
  const auto weekly = calendar(FixedWindow::Align::Week);
  bill_ = {{limit::key_of(3), &weekly}};
  auto now = kNoon;
  for (const auto error : {0h, -168h, 168h}) {  // weir's clock is wrong by up to a week
    ASSERT_EQ(ask(now, error), ReplyReading::Answer) << error.count();
    EXPECT_EQ(outcomes_[0].remaining, 1U);
    EXPECT_EQ(outcomes_[0].reset_after, 60h);
    ASSERT_EQ(ask(now + 60h - 1us, error), ReplyReading::Answer) << error.count();
    EXPECT_EQ(outcomes_[0].remaining, 0U);
    ASSERT_EQ(ask(now + 60h, error), ReplyReading::Answer) << error.count();
    EXPECT_EQ(outcomes_[0].remaining, 1U);
    now += 2 * 168h;
  }
}

// The key must live until the end of the window that Redis selects from the three sent windows.
TEST_F(CalendarScript, KeyExpiresAtTheEndOfTheChosenWindow) {
  auto now = kNoon;
  // weir sends three windows around its own time. If weir's clock is a day ahead, Redis needs the first
  // window; if it is right, the second; if it is a day behind, the third.
  for (const auto error : {24h, 0h, -24h}) {
    ASSERT_EQ(ask(now, error), ReplyReading::Answer) << error.count();
    EXPECT_EQ(scripts_.life_of(bill_[0].key), 12h + 2ms) << error.count();
    ASSERT_EQ(ask(now + 12h - 1us, error), ReplyReading::Answer) << error.count();
    EXPECT_EQ(outcomes_[0].remaining, 0U) << error.count();
    ASSERT_EQ(ask(now + 12h, error), ReplyReading::Answer) << error.count();
    EXPECT_EQ(outcomes_[0].remaining, 1U) << error.count();
    now += 48h;
  }
}

TEST_F(CalendarScript, NothingIsChargedIfTheTimeOfRedisIsOutsideTheSentWindows) {
  bill_.push_back({limit::key_of(2), &bucket_});
  for (const auto error : {-49h, 49h}) {
    ASSERT_EQ(ask(kNoon, error), ReplyReading::OtherTime);
    EXPECT_EQ(then_, kNoon);
  }
  ASSERT_EQ(ask(kNoon, 0h), ReplyReading::Answer);
  EXPECT_EQ(outcomes_[0].remaining, 1U);
  EXPECT_TRUE(outcomes_[1].allowed);
}

TEST_F(CalendarScript, SentWindowsIncludeTheirStartAndExcludeTheirEnd) {
  const auto midnight = kNoon + 12h;
  EXPECT_EQ(ask(midnight, 24h), ReplyReading::Answer);
  EXPECT_EQ(ask(midnight - 1us, 24h + 1us),
            ReplyReading::Answer);  // Redis's clock went back, but the window in the state has not ended
  scripts_.forget_all();
  EXPECT_EQ(ask(midnight - 1us, 24h + 1us), ReplyReading::OtherTime);
  EXPECT_EQ(ask(midnight, -24h - 1us), ReplyReading::OtherTime);
  EXPECT_EQ(ask(midnight - 1us, -24h), ReplyReading::Answer);
}

TEST_F(CalendarScript, StoredWindowIsUsedIfItContainsTheTimeOfRedisAndNoSentWindowDoes) {
  ASSERT_EQ(ask(kNoon, 0h), ReplyReading::Answer);
  ASSERT_EQ(ask(kNoon + 1h, 49h), ReplyReading::Answer);
  EXPECT_EQ(outcomes_[0].remaining, 0U);
  ASSERT_EQ(ask(kNoon + 12h - 1us, 49h), ReplyReading::Answer);
  EXPECT_FALSE(outcomes_[0].allowed);
  EXPECT_EQ(outcomes_[0].retry_after, 1us);
  EXPECT_EQ(ask(kNoon + 12h, 49h), ReplyReading::OtherTime);
}

using Numbers = std::vector<std::int64_t>;

std::string said(const Numbers& values) {
  std::string text = "*" + std::to_string(values.size()) + "\r\n";
  for (const auto value : values) text += ":" + std::to_string(value) + "\r\n";
  return text;
}

// A server that answers a store's greeting and test charge. Its answer to each later call consists of the
// next element of `replies` and the call's number. REQUIRES: each call has one charge.
class Canned {
 public:
  Canned(net::asio::io_context& loop, const std::string& path, std::vector<Numbers> replies)
      : acceptor_(loop, Protocol::endpoint(path)), peer_(loop), replies_(std::move(replies)) {
    replies_.insert(replies_.begin(), {1, 1, 0, 0, 0});
    acceptor_.async_accept(peer_, [this](net::ErrorCode ec) {
      if (ec) return;
      const std::string sha = "$40\r\n0123456789012345678901234567890123456789\r\n";
      say("+OK\r\n" + sha + sha);
      listen();
    });
  }
  // Empties `received`.
  void forget() {
    received.clear();
    answered_ = 0;
  }
  std::string received;  // the commands since the last forget()

 private:
  using Protocol = net::asio::local::stream_protocol;

  void say(const std::string& text) { net::asio::write(peer_, net::asio::buffer(text)); }
  // Reads the next commands. A read may end anywhere within a command, because the scripts are longer than
  // the buffer.
  void listen() {
    peer_.async_read_some(net::asio::buffer(input_), [this](net::ErrorCode ec, std::size_t n) {
      if (ec) return;
      received.append(input_.data(), n);
      while (next_ < replies_.size()) {
        const auto call = next_call();
        if (!call) break;
        auto& reply = replies_[next_++];
        reply.push_back(*call);
        say(said(reply));
      }
      listen();
    });
  }

  // Returns the number of the next call of a script, which is the first of nine doubles in the command.
  // Returns nullopt if that part of the command has not arrived.
  std::optional<std::int64_t> next_call() {
    constexpr std::string_view kHead = "\r\n$72\r\n";
    double number = 0;
    const auto command = received.find("EVALSHA", answered_);
    const auto at = command == std::string::npos ? command : received.find(kHead, command);
    if (at == std::string::npos || received.size() < at + kHead.size() + sizeof number) return std::nullopt;
    answered_ = at + kHead.size();
    received.copy(reinterpret_cast<char*>(&number), sizeof number, answered_);
    return static_cast<std::int64_t>(number);
  }

  Protocol::acceptor acceptor_;
  Protocol::socket peer_;
  std::vector<Numbers> replies_;
  std::size_t next_ = 0;
  std::size_t answered_ = 0;  // the position in `received` behind the last answered command
  std::array<char, 4096> input_{};
};

// A Redis whose clock is in the year 2060. weir does not know this before the first reply.
class DifferentRedisTime : public ::testing::Test {
 protected:
  const base::TimePoint there_{std::chrono::sys_days{std::chrono::year{2060} / 2 / 29} + 6h};
  const std::int64_t us_ = there_.time_since_epoch().count();
  Server folder_;  // the test uses only the server's folder, not the server
  limit::Limiter monthly_ = calendar(FixedWindow::Align::Month);
  std::vector<limit::Charge> bill_ = {{limit::key_of(1), &monthly_}};

  RedisSettings settings() {
    auto settings = Worker::settings_for(folder_);
    settings.address.unix_path += "-canned";
    return settings;
  }
};

TEST_F(DifferentRedisTime, RequestIsSentAgainWithTheWindowsAtTheTimeOfRedis) {
  Worker worker(settings());
  Canned redis(worker.loop, settings().address.unix_path,
               {{us_, 2, 0, 0, 0}, {us_, 1, 0, 0, 0}, {us_, 1, 0, 0, 0}});
  ASSERT_TRUE(worker.turn_until_up());
  const auto answer = worker.charge(bill_);
  ASSERT_FALSE(answer.error) << worker.store.last_error();
  EXPECT_EQ(answer.now, there_);
  EXPECT_EQ(answer.outcomes[0].reset_after, 18h);  // the rest of 29 February
  const double march = static_cast<double>((us_ + std::chrono::microseconds(18h).count()));
  const std::string bytes(reinterpret_cast<const char*>(&march), sizeof march);
  EXPECT_NE(redis.received.find(bytes), std::string::npos);
  // The next request of weir has the windows around Redis's time.
  redis.forget();
  EXPECT_FALSE(worker.charge(bill_).error);
  EXPECT_NE(redis.received.find(bytes), std::string::npos);
}

TEST_F(DifferentRedisTime, RequestFailsIfASecondReplyStillSaysThatTheTimeIsWrong) {
  Worker worker(settings());
  Canned redis(worker.loop, settings().address.unix_path, {{us_, 2, 0, 0, 0}, {us_, 2, 0, 0, 0}});
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_EQ(worker.charge(bill_).error, StoreError::BadReply);
  EXPECT_EQ(worker.store.stats().refunds_lost.load(), 0U) << "no charge was made";
}

TEST_F(DifferentRedisTime, ChargesOfAnUnreadableReplyAreCountedAsLost) {
  Worker worker(settings());
  Canned redis(worker.loop, settings().address.unix_path, {{us_, 7, 0, 0, 0}, {us_, 0}});
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_EQ(worker.charge(bill_).error, StoreError::BadReply);
  EXPECT_EQ(worker.store.stats().refunds_lost.load(), 1U);
  EXPECT_EQ(worker.charge(bill_).error, StoreError::BadReply);
  EXPECT_EQ(worker.store.stats().refunds_lost.load(), 2U);
}

TEST_F(DifferentRedisTime, RefundWithAnUnreadableReplyIsCountedAsLost) {
  Worker worker(settings());
  Canned redis(worker.loop, settings().address.unix_path, {{us_, 7, 0, 0}});
  ASSERT_TRUE(worker.turn_until_up());
  worker.store.refund(bill_[0], {});
  EXPECT_TRUE(worker.turn_until([&] { return worker.store.stats().refunds_lost.load() != 0; }));
  EXPECT_EQ(worker.store.stats().refunds_lost.load(), 1U);
}

}  // namespace
}  // namespace weir::redis
