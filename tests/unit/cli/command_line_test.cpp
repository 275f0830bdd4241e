#include "weir/cli/command_line.hpp"

#include "cli/admin_access.hpp"
#include "unit/config/configuration.hpp"

#include "weir/cli/commands.hpp"
#include "weir/server/run.hpp"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::cli::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Said {
  int code;
  std::string out;
  std::string err;
};

Said say(std::vector<std::string> words) {
  words.insert(words.begin(), "weir");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run_command_line(static_cast<int>(argv.size()), argv.data());
  auto out = ::testing::internal::GetCapturedStdout();
  return {code, std::move(out), ::testing::internal::GetCapturedStderr()};
}

TEST(CommandLine, VersionAndHelpOptionsPrintTheirText) {
  for (const char* way : {"version", "--version"}) {
    SCOPED_TRACE(way);
    EXPECT_THAT(say({way}).out,
                testing::MatchesRegex("weir " WEIR_VERSION
                                      "( \\(commit [0-9a-f]+, 20[0-9]{2}-[0-9]{2}-[0-9]{2}\\))?\n"));
  }
  EXPECT_EQ(say({"--help"}).code, 0);
  EXPECT_THAT(say({"run", "--help"}).out, HasSubstr("--config"));
}

TEST(CommandLine, UsageNamesPositionalArgumentsByWhatTheyStandFor) {
  EXPECT_THAT(say({"run", "--help"}).out, HasSubstr("Usage: weir run [OPTIONS] FILE\n"));
  EXPECT_THAT(say({"top", "--help"}).out, HasSubstr("Usage: weir top [OPTIONS] [FILE]\n"));
  EXPECT_THAT(say({"explain", "--help"}).out, HasSubstr("Usage: weir explain [OPTIONS] [[METHOD] URL]\n"));
  EXPECT_THAT(say({"replay", "--help"}).out, HasSubstr("Usage: weir replay [OPTIONS] LOG ...\n"));
  EXPECT_THAT(say({"servers", "weight", "--help"}).out,
              HasSubstr("Usage: weir servers weight [OPTIONS] NAME ADDRESS N\n"));
}

TEST(CommandLine, RepeatableOptionTakesOneValueEachTimeSoThatTheUrlMayFollowIt) {
  const std::vector<std::string> commands[] = {{"explain", "-H", "no colon", "/api"},
                                               {"explain", "-H", "a: b", "-H", "no colon", "GET", "/api"}};
  for (const auto& words : commands)
    EXPECT_THAT(say(words).err, StartsWith("weir: -H \"no colon\" is not a header"));
  EXPECT_THAT(say({"explain", "--descriptor", "a=b", "--descriptor", "c", "/api"}).err,
              StartsWith("weir: --descriptor \"c\" has no key"));
}

TEST(CommandLine, InvalidArgumentsAreRejectedWithAReasonAndExitCode2) {
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{},
       "weir: no command; expected one of \"run\", \"reload\", \"upgrade\", \"check\", \"import\", "
       "\"redis-check\", \"explain\", \"keys\", \"client-keys\", \"servers\", \"top\", "
       "\"replay\", \"echo\", \"health\", \"schema\", \"version\"\n"},
      {{"chek"}, "weir: there is no command \"chek\"; did you mean \"check\"?\n"},
      {{"run"}, "weir: run: FILE is required: configuration file\n"},
      {{"--versio"}, "weir: there is no option \"--versio\" before a command\n"},
      {{"run", "--confg", "a"}, "weir: The following argument was not expected: --confg\n"},
      {{"redis-check"}, "weir: redis-check: FILE is required: configuration file\n"},
      {{"replay", "a.log"}, "weir: replay: --config is required: configuration file with the other rules\n"},
      {{"import"}, "weir: import: FILE is required: nginx.conf, or "},
      {{"echo"}, "weir: echo: --listen is required: host:port, [v6]:port or unix:/path\n"},
      {{"echo", "--listen", "nowhere"}, "weir: --listen: \"nowhere\" is not an address"},
      {{"echo", "--listen", "a:1", "--delay", "5"}, "weir: --delay: \"5\" is not a duration"},
      {{"echo", "--listen", "a:1", "--workers", "0"}, "weir: --workers: "},
      {{"health", "--admin", "9900"}, "weir: --admin: \"9900\" is not an address"},
      {{"version", "now"}, "weir: "},
      {{"keys"}, "weir: keys: no command; expected one of \"show\", \"reset\"\n"},
      {{"keys", "rest", "login"}, "weir: keys: there is no command \"rest\"; did you mean \"reset\"?\n"},
      {{"keys", "show"}, "weir: keys: show: RULE is required: name of the rule\n"},
      {{"servers", "weight", "api", "a:1"}, "weir: servers: weight: N is required: "},
      {{"servers", "drain", "api"}, "weir: servers: drain: ADDRESS is required: address of the server, "},
      {{"servers", "weight", "api", "a:1", "0"}, "weir: weight: Value 0 not in range 1 to 240\n"},
      {{"servers", "stop"}, "weir: The following argument was not expected: stop\n"},
  };
  for (const auto& [words, sentence] : wrong) {
    const auto said = say(words);
    EXPECT_EQ(said.code, 2) << sentence;
    EXPECT_THAT(said.err, StartsWith(sentence));
    EXPECT_THAT(said.out, IsEmpty());
  }
}

TEST(CommandLine, ExplainNamesTheOptionWhoseValueIsWrong) {
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{"explain", "/a", "--ip", "foo"},
       "weir: --ip \"foo\" is not an IP address; write one such as 203.0.113.7\n"},
      {{"explain", "/a", "--cost", "-1"},
       "weir: --cost \"-1\" is not a whole number; write such as --cost 5\n"},
      {{"explain", "ftp://a/b"}, "weir: \"ftp://a/b\" begins with ftp://; write http:// or https://\n"}};
  for (const auto& [words, sentence] : wrong) {
    const auto said = say(words);
    EXPECT_EQ(said.code, 2) << sentence;
    EXPECT_EQ(said.err, sentence);
  }
}

TEST(CommandLine, CommandWhoseOutputCannotBeWrittenFails) {
  const config::test::Folder folder;
  const auto file = folder.write(config::test::kFile, config::test::kLeast);
  std::ofstream full("/dev/full");
  auto* const before = std::cout.rdbuf(full.rdbuf());
  std::string words[] = {"weir", "check", file};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data()};
  ::testing::internal::CaptureStderr();
  const int code = run_command_line(3, argv);
  const auto errors = ::testing::internal::GetCapturedStderr();
  std::cout.rdbuf(before);
  std::cout.clear();
  EXPECT_EQ(code, 1);
  EXPECT_THAT(errors, HasSubstr("weir: standard output cannot be written\n"));
}

TEST(CommandLine, AdminAddressAndTokenComeFromOptionsElseFromTheFileElseFromDefaults) {
  const auto access = [](const TypedAccess& typed, const config::Settings* file) {
    const auto found = find_access(typed, file).value();
    return found ? found->address.to_string() + " " + found->token : "nobody";
  };
  config::Settings file;
  ASSERT_EQ(::unsetenv("WEIR_ADMIN_TOKEN"), 0);
  EXPECT_EQ(access({"", ""}, nullptr), "127.0.0.1:9900 ");
  EXPECT_EQ(access({"", ""}, &file), "nobody");
  EXPECT_EQ(access({"[::1]:1", ""}, &file), "[::1]:1 ");
  file.admin = {.address = *base::parse_endpoint("127.0.0.1:2"), .token = "filed"};
  EXPECT_EQ(access({"", ""}, &file), "127.0.0.1:2 filed");
  EXPECT_EQ(access({"[::1]:1", "typed"}, &file), "[::1]:1 typed");
  ASSERT_EQ(::setenv("WEIR_ADMIN_TOKEN", "known", 1), 0);
  EXPECT_EQ(access({"", ""}, &file), "127.0.0.1:2 filed");
  EXPECT_EQ(access({"", ""}, nullptr), "127.0.0.1:9900 known");
  EXPECT_EQ(access({"", "typed"}, nullptr), "127.0.0.1:9900 typed");
  ASSERT_EQ(::unsetenv("WEIR_ADMIN_TOKEN"), 0);
  EXPECT_FALSE(find_access({"9900", ""}, nullptr));
}

TEST(CommandLine, CheckCommandPrintsADescriptionOfTheConfiguration) {
  const config::test::Folder folder;
  const auto said = say({"check", "--config", folder.write(config::test::kFile, config::test::kLeast)});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out,
            "listener 127.0.0.1:8080 plain\n"
            "bounds: heads up to 16KiB, 16384 connections\n"
            "    head 10s, body 30s, write 30s, idle 75s; at least 500 bytes a second over 20s\n"
            "upstream \"api\": 127.0.0.1:9001\n"
            "    connect 1s, all connects 5s; response 30s, idle 1min, tunnel 5min, 100-continue after 1s\n"
            "    ejected after 3 failures for 1s to 30s, slow start 5s\n"
            "    retries on 2 servers at most, 20% of requests, first after 25ms at most, if broken late\n"
            "route \"*\": everything -> upstream \"api\"\n"
            "    rule \"all\": token_bucket 10/s, burst 10, per [api_key|ip], in memory\n");
  EXPECT_THAT(said.err, HasSubstr("warning: rule \"all\""));
}

TEST(CommandLine, CheckCommandPrintsADescriptionOfTheConfigurationAsJson) {
  const config::test::Folder folder;
  const auto file =
      folder.write(config::test::kFile, config::test::with("[log]\naccess = \"none/access.log\"\n"));
  const auto said = say({"check", "--json", "--config", file});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, StartsWith(R"({"ok":true,"mistakes":[],"warnings":[{"where":")" + file));
  EXPECT_THAT(said.out, HasSubstr("cannot be opened: No such file or directory"));
  EXPECT_THAT(
      said.out,
      HasSubstr(R"("listeners":["127.0.0.1:8080"],"upstreams":[{"name":"api","servers":["127.0.0.1:9001"]}],)"
                R"("routes":["*"],"rules":[{"name":"all","algorithm":"token_bucket",)"
                R"("limit":"token_bucket 10/s, burst 10","match":"everything","key":"[api_key|ip]",)"
                R"("store":"memory","mode":"enforce"}],"keys":null})"
                "\n"));
}

TEST(CommandLine, CheckCommandPrintsEveryConfigurationMistakeAsJson) {
  const config::test::Folder folder;
  const auto file = folder.write(config::test::kFile, config::test::with("[server]\nworkers = -1\n"));
  const auto said = say({"check", "--json", "--config", file});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.out, R"({"ok":false,"mistakes":[")" + file +
                          ":12: server.workers: found -1; expected a whole number from 0 to 256\"],"
                          "\"warnings\":[]}\n");
}

TEST(CommandLine, CheckCommandWarnsOfAnAccessLogThatCannotBeOpened) {
  const config::test::Folder folder;
  const auto file =
      folder.write(config::test::kFile, config::test::with("[log]\naccess = \"none/access.log\"\n"));
  const auto said = say({"check", "--config", file});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.err, HasSubstr(file + ": warning: log.access: " + folder.file("none/access.log") +
                                  " cannot be opened: No such file or directory"));
}

TEST(CommandLine, CheckCommandWithStrictOptionExitsWithCode1AfterAWarning) {
  const config::test::Folder folder;
  const auto warned = folder.write(config::test::kFile, config::test::kLeast);
  EXPECT_EQ(say({"check", "--config", warned}).code, 0);
  const auto said = say({"check", "--strict", "--config", warned});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.out, HasSubstr("rule \"all\""));
  EXPECT_THAT(said.err, HasSubstr("warning: rule \"all\""));
  const auto clean = folder.write("clean.toml", config::test::with("key = [\"ip\"]\n"));
  EXPECT_EQ(say({"check", "--strict", "--config", clean}).code, 0);
  const auto log =
      folder.write("log.toml", config::test::with("key = [\"ip\"]\n[log]\naccess = \"none/access.log\"\n"));
  EXPECT_EQ(say({"check", "--strict", "--config", log}).code, 1);
  const auto wrong = folder.write("wrong.toml", config::test::with("[server]\nworkers = -1\n"));
  EXPECT_EQ(say({"check", "--strict", "--config", wrong}).code, 2);
}

TEST(CommandLine, CheckCommandPrintsEveryConfigurationMistakeAndExitsWithCode2) {
  const config::test::Folder folder;
  const auto file =
      folder.write(config::test::kFile, config::test::with("[server]\nworkers = -1\ndrian = \"1s\"\n"));
  for (const auto* command : {"check", "run"}) {
    const auto said = say({command, "--config", file});
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.out, IsEmpty());
    EXPECT_EQ(said.err, file + ":12: server.workers: found -1; expected a whole number from 0 to 256\n" +
                            file +
                            ":13: server.drian: unknown key; did you mean \"drain\"?\n"
                            "weir: 2 mistakes in the configuration\n");
  }
}

// A server on a free loopback port. It reads one request and sends `answer`. If `answer` is empty, the server
// sends nothing and waits.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 1) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("listen");
    port_ = ntohs(address.sin_port);
    if (!answer.empty()) thread_ = std::thread([this, text = std::move(answer)] { serve(text); });
  }
  ~OneAnswer() {
    if (thread_.joinable()) thread_.join();
    ::close(listener_);
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  [[nodiscard]] base::Endpoint address() const { return {"127.0.0.1", port_, ""}; }
  // Returns the request that the server read. Waits until the server has sent its answer.
  [[nodiscard]] const std::string& request() {
    thread_.join();
    return request_;
  }

 private:
  void serve(const std::string& answer) {
    const int client = ::accept(listener_, nullptr, nullptr);
    char buffer[1024];
    while (request_.find("\r\n\r\n") == std::string::npos) {
      const auto got = ::recv(client, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      request_.append(buffer, static_cast<std::size_t>(got));
    }
    (void)::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::close(client);
  }

  int listener_;
  std::uint16_t port_ = 0;
  std::string request_;
  std::thread thread_;
};

TEST(Health, HealthCommandSucceedsIfTheAdminListenerAnswers200) {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(run_health(server.address(), false), 0);
  EXPECT_EQ(server.request(), "GET /healthz HTTP/1.1\r\nHost: " + server.address().to_string() +
                                  "\r\nConnection: close\r\n\r\n");
}

TEST(Health, HealthCommandFailsOnAnyResponseOtherThan200) {
  for (const auto* answer : {"HTTP/1.1 503 Service Unavailable\r\n\r\n", "HTTP/1.1", "SSH-2.0-x 200\r\n"}) {
    OneAnswer server(answer);
    EXPECT_EQ(say({"health", "--admin", server.address().to_string()}).code, 1) << answer;
  }
}

TEST(Health, HealthCommandWithReadyOptionSucceedsIfWeirIsReady) {
  OneAnswer server("HTTP/1.1 200 OK\r\n\r\n{\"ready\":true,\"detail\":\"redis does not answer\"}");
  EXPECT_EQ(say({"health", "--ready", "--admin", server.address().to_string()}).code, 0);
  EXPECT_THAT(server.request(), StartsWith("GET /readyz HTTP/1.1\r\n"));
}

TEST(Health, HealthCommandWithReadyOptionFailsAndPrintsWhyWeirIsNotReady) {
  const std::pair<const char*, const char*> replies[] = {
      {"HTTP/1.1 503 Service Unavailable\r\n\r\n{\"ready\":false,\"detail\":\"about to drain\"}",
       ": not ready: about to drain\n"},
      {"HTTP/1.1 503 Service Unavailable\r\n\r\n"
       "{\"ready\":false,\"detail\":\"waiting for redis\",\"cause\":\"Connection refused\"}",
       ": not ready: waiting for redis (Connection refused)\n"},
      {"HTTP/1.1 200 OK\r\n\r\nok", ": it returns 200 without JSON\n"},
      {"HTTP/1.1 404 Not Found\r\n\r\n{\"error\":\"not_found\"}",
       ": this is not an admin listener of weir\n"},
      {"SSH-2.0-x 200\r\n", ": this is not an admin listener of weir\n"},
  };
  for (const auto& [reply, why] : replies) {
    OneAnswer server(reply);
    const auto said = say({"health", "--ready", "--admin", server.address().to_string()});
    EXPECT_EQ(said.code, 1) << reply;
    EXPECT_EQ(said.err, "weir: " + server.address().to_string() + why);
  }
}

TEST(Health, HealthCommandFailsIfTheAdminListenerRefusesTheConnection) {
  std::uint16_t port = 0;
  { port = OneAnswer("").address().port; }
  const auto said = say({"health", "--admin", "127.0.0.1:" + std::to_string(port)});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr("cannot connect: Connection refused"));
  EXPECT_EQ(say({"health", "--admin", "unix:/nowhere/weir.sock"}).code, 1);
}

TEST(Health, HealthCommandFailsAfterTwoSecondsWithoutAResponse) {
  const OneAnswer silent("");
  const auto start = std::chrono::steady_clock::now();
  const auto said = say({"health", "--admin", silent.address().to_string()});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr("no answer within 2 seconds"));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

}  // namespace
}  // namespace weir::cli::test
