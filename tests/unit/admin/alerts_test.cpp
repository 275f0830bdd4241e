// Tests alerts over real sockets, with sources that throw exceptions.
#include "weir/admin/alerts.hpp"

#include "unit/admin/login_alerts.hpp"
#include "unit/net/sockets.hpp"

#include "weir/net/listener.hpp"

#include <atomic>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::admin {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

net::ListeningSocket listen() {
  return net::ListeningSocket::open({.host = "127.0.0.1", .port = 0, .unix_path = {}}).value();
}

// A webhook that accepts every message.
class Receiver {
 public:
  ~Receiver() { ::shutdown(socket_.native_handle(), SHUT_RDWR); }
  [[nodiscard]] const base::Endpoint& address() const { return socket_.address(); }
  [[nodiscard]] int posts() const { return posts_; }

 private:
  void serve() {
    for (;;) {
      const net::Descriptor taken(::accept(socket_.native_handle(), nullptr, nullptr));
      if (taken.number() < 0) return;
      for (std::string heard; heard.find("}") == std::string::npos;) {
        const auto more = net::receive(taken.number(), 1);
        if (more.empty()) break;
        heard += more;
      }
      ++posts_;
      net::send_all(taken.number(), "HTTP/1.1 204 No Content\r\n\r\n");
    }
  }
  static net::ListeningSocket blocking() {
    auto socket = listen();
    ::fcntl(socket.native_handle(), F_SETFL, 0);
    return socket;
  }

  net::ListeningSocket socket_ = blocking();
  std::atomic<int> posts_ = 0;
  std::jthread thread_{[this] { serve(); }};
};

class AlertsTest : public LoginAlerts {
 protected:
  AlertsTest() {
    // A clock that runs 20 times as fast shortens the pauses between attempts.
    sources_.now = [began = std::chrono::steady_clock::now()] {
      const auto passed = std::chrono::steady_clock::now() - began;
      return base::TimePoint{1'000'000s + 20 * std::chrono::duration_cast<base::Duration>(passed)};
    };
  }
  static AlertSettings alert(const char* name, const base::Endpoint& to, base::Duration timeout) {
    auto settings = alert_on_login(name, {.count = 3, .period = 1h}, 1000);
    settings.timeout = timeout;
    settings.webhook.address = to;
    settings.webhook.target = "/hook";
    return settings;
  }
  void begin(std::vector<AlertSettings> settings) {
    alerts_.emplace(context_.get_executor(), std::move(settings), sources_,
                    [this](const std::string& line) { log_.push_back(line); });
    alerts_->start();
    counters_.decisions(0, observe::RuleOutcome::Refused).add(6);
  }
  template <class Done>
  void until(Done done) {
    ASSERT_TRUE(net::turn_until(context_, done));
  }
  AlertFigures figures(std::size_t at = 0) { return alerts_->figures().at(at); }

  net::asio::io_context context_{1};
  std::vector<std::string> log_;
  std::optional<Alerts> alerts_;
};

TEST_F(AlertsTest, ExceptionInADataSourceIsLoggedOnceAndAlertsContinue) {
  Receiver receiver;
  bool broken = false;
  sources_.now = [&broken, now = sources_.now] {
    if (broken) throw std::bad_alloc();
    return now();
  };
  begin({alert("a", receiver.address(), 1h)});
  broken = true;
  until([&] { return alerts_->faults() >= 2; });
  EXPECT_THAT(log_, ::testing::ElementsAre(
                        HasSubstr("alerts: looking and posting failed; weir continues: std::bad_alloc")));
  broken = false;
  until([&] { return figures().posted == 1; });
}

}  // namespace
}  // namespace weir::admin
