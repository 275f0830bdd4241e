#include "weir/admin/server.hpp"

#include "admin/pages/admission.hpp"
#include "unit/admin/served_admin.hpp"

#include <filesystem>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

namespace weir::admin {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(ServerTest, AnswersWithSecurityHeadersOnTheReportedPort) {
  begin();
  EXPECT_NE(server_->bound().port, 0);
  const auto said = ask(kHealth);
  EXPECT_THAT(said, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(said, HasSubstr("Cache-Control: no-store\r\n"));
  for (const auto& [name, value] : kGuardingFields)
    EXPECT_THAT(said, HasSubstr(std::string(name) + ": " + std::string(value) + "\r\n"));
  EXPECT_THAT(said, EndsWith("\r\n\r\nok\n"));
}

TEST_F(ServerTest, ConnectionStaysOpenAndPipelinedRequestsAreAnsweredInOrder) {
  begin();
  auto one = client();
  one.say("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto said = one.hear_until("no such page");
  EXPECT_LT(said.find("200 OK"), said.find("404 Not Found"));
  one.say(kHealth);
  EXPECT_THAT(one.hear_all(), EndsWith("ok\n"));
}

TEST_F(ServerTest, HeadGetsTheSameResponseAsGetWithoutTheBody) {
  begin();
  const auto said = ask("HEAD /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(said, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(said, EndsWith("\r\n\r\n"));
}

TEST_F(ServerTest, RequestWithoutTheRequiredTokenGets401WithAChallenge) {
  ServerOptions options;
  options.token = "s3cret";
  begin(options);
  const auto refused = ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(refused, HasSubstr("WWW-Authenticate: Bearer"));
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\nConnection: "
                  "close\r\n\r\n"),
              HasSubstr("\nweir_workers 1\n"));
  EXPECT_THAT(ask(kHealth), StartsWith("HTTP/1.1 200"));
}

// In DNS rebinding, a browser loads a hostile page. The host name of the page then resolves to this
// listener's address.
TEST_F(ServerTest, RejectsAHostNameOfAnotherSiteIfNoTokenIsConfigured) {
  begin();
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9900\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServerTest, WrongMethodGets405WithTheAllowedMethods) {
  begin();
  const auto said = ask("DELETE /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(said, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(said, HasSubstr("Allow: GET, HEAD\r\n"));
}

TEST_F(ServerTest, RejectsTooLargeHeadsUnexpectedBodiesAndBytesThatAreNotHttp) {
  begin();
  const std::string large = "GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n";
  // The server reads less than half of the head. When the server closes, it must not reset the connection,
  // because a reset could discard the response.
  EXPECT_THAT(ask(large), AllOf(StartsWith("HTTP/1.1 431 "), EndsWith("}")));
  EXPECT_THAT(ask("rubbish\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody"),
              StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask(kHealth), StartsWith("HTTP/1.1 200"));
}

// An earlier version accepted a request without Host, and did not check a second Host field.
TEST_F(ServerTest, RequiresExactlyOneHostField) {
  begin();
  const auto status_of = [&](std::string_view version, std::string_view hosts) {
    const auto said = ask("GET /metrics HTTP/" + std::string(version) + "\r\n" + std::string(hosts) +
                          "Connection: close\r\n\r\n");
    return said.substr(0, 12);
  };
  EXPECT_EQ(status_of("1.1", "Host: localhost\r\n"), "HTTP/1.1 200");
  EXPECT_EQ(status_of("1.1", ""), "HTTP/1.1 400");
  EXPECT_EQ(status_of("1.1", "Host: localhost\r\nHost: localhost\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status_of("1.1", "Host: localhost\r\nHost: evil.example\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status_of("1.0", ""), "HTTP/1.1 200");
  EXPECT_EQ(status_of("1.0", "Host: localhost\r\nHost: localhost\r\n"), "HTTP/1.1 400");
  EXPECT_THAT(ask("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 400"));
}

TEST_F(ServerTest, ReloadOrUpgradeThatFailsAtOnceIsAnsweredAtOnce) {
  std::string peers;
  sources_.reload = [&](const std::string& peer, const ReloadDone& done) {
    peers += peer + " ";
    done({.mistakes = {"not now"}, .changes = {}, .warnings = {}});
  };
  sources_.upgrade = [&](const std::string& peer, const UpgradeDone& done) {
    peers += peer + " ";
    done({.fault = "not now"});
  };
  sources_.longest_upgrade = std::chrono::seconds(9);
  begin();
  const auto before = std::chrono::steady_clock::now();
  for (const auto* page : {"reload", "upgrade"})
    EXPECT_THAT(
        ask(std::string("POST /api/") + page + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
        HasSubstr("not now"));
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  end();
  EXPECT_THAT(peers, ::testing::MatchesRegex("127\\.0\\.0\\.1:[0-9]+ 127\\.0\\.0\\.1:[0-9]+ "));
}

TEST_F(ServerTest, ClosesAConnectionThatSendsNoCompleteHeadInTime) {
  ServerOptions options;
  options.head_deadline = base::Duration{100'000};
  begin(options);
  auto silent = client();
  auto slow = client();
  slow.say("GET /healthz HTTP/1.1\r\nHost:");
  EXPECT_EQ(silent.hear_all(), "");
  EXPECT_EQ(slow.hear_all(), "");
}

TEST_F(ServerTest, ClosesAnIdleConnection) {
  ServerOptions options;
  options.head_deadline = std::chrono::hours(1);
  options.deadline = base::Duration{100'000};
  begin(options);
  auto idle = client();
  idle.say("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(idle.hear_all(), EndsWith("ok\n"));
}

// In an earlier version, silent connections filled the listener, and health checks failed until the time
// limit passed.
TEST_F(ServerTest, NewConnectionAtTheMaximumReplacesTheConnectionThatHasBeenSilentLongest) {
  begin(crowded(3));
  auto silent = client();
  auto slow = client();
  slow.say("GET /healthz HTTP/1.1\r\nHost:");
  auto answered = client();
  answered.say("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  answered.hear_until("ok\n");
  EXPECT_THAT(ask(kHealth), EndsWith("ok\n"));
  EXPECT_EQ(silent.hear_all(), "");
  slow.say(" a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(slow.hear_all(), EndsWith("ok\n"));
  answered.say(kHealth);
  EXPECT_THAT(answered.hear_all(), EndsWith("ok\n"));
}

TEST_F(ServerTest, NewConnectionAtTheMaximumReplacesAConnectionThatIsBeingClosed) {
  begin(crowded(1));
  auto stayer = client();
  stayer.say("rubbish\r\n\r\n");
  stayer.hear_until("}");
  EXPECT_THAT(ask(kHealth), EndsWith("ok\n"));
}

TEST_F(ServerTest, HistoryIsStillRecordedAfterAnExceptionInADataSource) {
  int looks = 0;
  sources_.now = [&looks] {
    if (looks++ == 0) throw std::bad_alloc();
    return base::TimePoint{std::chrono::seconds(1000)};
  };
  begin();
  const auto metrics = [&] {
    return ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  };
  EXPECT_THAT(metrics(), HasSubstr("\nweir_control_faults_total{part=\"admin\"} 1\n"));
  const auto recorded = [&] {
    return ask("GET /api/history HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  };
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (recorded().find("\"end\":0,") != std::string::npos)
    ASSERT_LT(std::chrono::steady_clock::now(), patience);
  end();
  EXPECT_EQ(fault_, "admin: recording failed; weir continues: std::bad_alloc");
}

TEST_F(ServerTest, ExceptionInADataSourceClosesTheConnectionAndIsLogged) {
  sources_.readiness = []() -> Readiness { throw std::runtime_error("no state to read"); };
  begin();
  EXPECT_EQ(ask("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"), "");
  EXPECT_THAT(ask(kHealth), StartsWith("HTTP/1.1 200"));
  end();
  EXPECT_EQ(fault_, "admin: answering failed; weir continues: no state to read");
}

TEST_F(ServerTest, StoppedServerClosesIdleConnectionsAndLetsTheEventLoopEnd) {
  begin();
  auto idle = client();
  idle.say("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  idle.hear_until("ok\n");
  end();
  EXPECT_EQ(idle.hear_all(), "");
}

TEST_F(ServerTest, ErrorNamesAPortThatIsInUse) {
  begin();
  ServerOptions options;
  options.address = server_->bound();
  const auto second = Server::listen(io_, options, {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr(server_->bound().to_string()));
  EXPECT_THAT(second.error().message, HasSubstr("in use"));
}

// If weir was killed (kill -9), the file of its socket remains, but no process listens on the socket.
TEST_F(ServerTest, ReplacesAUnixSocketFileThatNobodyServes) {
  std::string folder = (std::filesystem::temp_directory_path() / "weir-admin-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  ServerOptions options;
  options.address.unix_path = folder + "/admin.sock";
  {
    net::asio::io_context io;
    const net::asio::local::stream_protocol::acceptor left(io, options.address.unix_path);
  }
  ASSERT_TRUE(std::filesystem::exists(options.address.unix_path));
  EXPECT_TRUE(Server::listen(io_, options, {}));
  std::filesystem::remove_all(folder);
}

TEST_F(ServerTest, ServesOnAUnixSocketAndRemovesItsFileAtTheEnd) {
  std::string folder = (std::filesystem::temp_directory_path() / "weir-admin-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  ServerOptions options;
  options.address.unix_path = folder + "/admin.sock";
  begin(options);
  net::asio::io_context io;
  net::asio::local::stream_protocol::socket socket(io);
  socket.connect(options.address.unix_path);
  net::asio::write(socket, net::asio::buffer(kHealth));
  std::string said;
  net::ErrorCode ec;
  net::asio::read(socket, net::asio::dynamic_buffer(said), ec);
  EXPECT_THAT(said, EndsWith("ok\n"));
  end();
  EXPECT_FALSE(std::filesystem::exists(options.address.unix_path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weir::admin
