// Replaces each faulty line by the line that the message about it advises. weir must accept the resulting
// configuration.
#include "unit/config/configuration.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Faulty {
  std::string before;  // the lines before the faulty lines
  std::string lines;   // the faulty lines
  std::string advice;  // the lines that the message must advise
};

// Returns the line that a message tells the user to write.
std::string advised_by(const std::string& message) {
  const auto at = message.rfind("write ");
  if (at == std::string::npos) return "no advice in: " + message;
  const auto line = message.substr(at + 6);
  return line.substr(0, line.find(", or "));
}

void expect_taken(const std::vector<Faulty>& all) {
  for (const auto& [before, lines, advice] : all) {
    const auto messages = mistakes_in(before + lines);
    EXPECT_FALSE(messages.empty()) << lines;
    // A faulty line may have been meant as a required key. Then weir also reports that the key is missing,
    // and the test skips this message.
    for (const auto& message : messages)
      if (message.find(": missing; ") == std::string::npos) {
        EXPECT_EQ(advised_by(message), advice) << message;
      }
    EXPECT_THAT(mistakes_in(before + advice + "\n"), IsEmpty()) << advice;
  }
}

std::string server() {
  return with("[server]\n");
}
std::string limited_rule() {
  return rule("limit = \"10/s\"\n");
}

TEST(Advice, AdviceForUnquotedValuesIsValidConfiguration) {
  expect_taken({{server(), "max_head = 16k\n", "max_head = \"16KiB\""},
                {server(), "max_head = 16K\n", "max_head = \"16KiB\""},
                {server(), "max_body = 1 MB\n", "max_body = \"1MB\""},
                {server(), "max_body = 8m;\n", "max_body = \"8MiB\""},
                {server(), "workers = yes\n", "workers = 0"},
                {server(), "workers = auto\n", "workers = 0"},
                {server(), "forwarded = yes\n", "forwarded = true"},
                {server(), "forwarded = Off\n", "forwarded = false"},
                {server(), "drain = 30 seconds\n", "drain = \"30s\""},
                {server(), "drain = 5m\n", "drain = \"5m\""},
                {server(), "drain = soon\n", "drain = \"30s\""},
                {server(), "half_close = END\n", "half_close = \"end\""},
                {server(), "ratelimit_headers = ietf\n", "ratelimit_headers = [\"ietf\"]"},
                {with("[log]\n"), "level = WARN\n", "level = \"warn\""},
                {with("[log]\n"), "level = warning\n", "level = \"warn\""},
                {with("[log]\n"), "level = off\n", "level = \"off\""},
                {with("[[listener]]\n"), "address = localhost\n", "address = \"localhost:8080\""},
                {rule(), "limit = 10 / s\n", "limit = \"10/s\""},
                {rule(), "limit = 10r/m\n", "limit = \"10/m\""},
                {rule(), "limit = 10 per minute\n", "limit = \"10/min\""},
                {rule(), "limit = 10/second\n", "limit = \"10/s\""},
                {rule(), "limit 10r/s;\n", "limit = \"10/s\""},
                {rule(), "limit: 10r/s\n", "limit = \"10/s\""},
                {limited_rule(), "burst = 10k\n", "burst = 10000"},
                {limited_rule(), "mode = dry_run\n", "mode = \"shadow\""},
                {limited_rule(), "algorithm = Token_Bucket\n", "algorithm = \"token_bucket\""}});
}

TEST(Advice, AdviceForUnquotedValuesInInlineTablesIsValidConfiguration) {
  for (const auto& [lines, advice] :
       {std::pair{"tiers = { pro = { limit = 10 / s } }\n", "limit = \"10/s\""},
        {"overrides = [{ match = { path = \"/a\" }, limit = 10 / s }]\n", "limit = \"10/s\""}}) {
    const auto messages = mistakes_in(limited_rule() + lines);
    ASSERT_THAT(messages, SizeIs(1)) << lines;
    EXPECT_EQ(advised_by(messages.front()), advice);
    auto fixed = std::string(lines);
    fixed.replace(fixed.find("limit = 10 / s"), 14, advice);
    EXPECT_THAT(mistakes_in(limited_rule() + fixed), IsEmpty()) << fixed;
  }
}

TEST(Advice, AdviceForValuesOfAWrongTypeIsValidConfiguration) {
  expect_taken({{server(), "max_head = \"16k\"\n", "max_head = \"16KiB\""},
                {server(), "max_body = \"10 mb\"\n", "max_body = \"10MB\""},
                {server(), "max_body = \"1G\"\n", "max_body = \"1GiB\""},
                {server(), "workers = \"4\"\n", "workers = 4"},
                {server(), "drain = 30\n", "drain = \"30s\""},
                {server(), "drain = [\"5 minutes\"]\n", "drain = \"5min\""},
                {server(), "forwarded = 1\n", "forwarded = true"},
                {with("[log]\n"), "level = \"WARN\"\n", "level = \"warn\""},
                {with("[log]\n"), "level = \"Warning\"\n", "level = \"warn\""},
                {with("[log]\n"), "level = \"ERR\"\n", "level = \"error\""},
                {limited_rule(), "status = [429]\n", "status = 429"},
                {limited_rule(), "status = \"503\"\n", "status = 503"},
                {limited_rule(), "status = [\"429\"]\n", "status = 429"},
                {limited_rule(), "burst = \"100\"\n", "burst = 100"},
                {limited_rule(), "key = \"ip\"\n", "key = [\"ip\"]"},
                {limited_rule(), "mode = \"Shadow\"\n", "mode = \"shadow\""},
                {limited_rule(), "store = \"Local\"\n", "store = \"memory\""},
                {limited_rule(), "match = \"/a\"\n", "match = { path = \"/a\" }"},
                {rule(), "limit = 10\n", "limit = \"10/s\""},
                {rule(), "limit = [10]\n", "limit = \"10/s\""},
                {rule(), "limit = \"10 / s\"\n", "limit = \"10/s\""}});
}

TEST(Advice, AdviceForACountAndAPeriodOnTwoLinesIsOneValidLimit) {
  for (const auto& [lines, advice] : {std::pair{"limit = 10\nwindow = \"1m\"\n", "limit = \"10/1m\""},
                                      {"window = \"1m\"\nlimit = 10\n", "limit = \"10/1m\""},
                                      {"limit = 10\nperiod = 60\n", "limit = \"10/60s\""},
                                      {"limit = 10\nunit = \"minute\"\n", "limit = \"10/min\""},
                                      {"requests = 5\nper = \"1 hour\"\n", "limit = \"5/1hour\""},
                                      {"rate = 10\nperiod = \"1s\"\n", "limit = \"10/1s\""},
                                      {"average = 100\n", "limit = \"100/s\""}})
    expect_taken({{rule(), lines, advice}});
}

TEST(Advice, AdviceForKeysOfOtherProxiesIsValidConfiguration) {
  const auto upstream = with("[[upstream]]\nname = \"b\"\n");
  const auto served = upstream + "servers = [\"a:1\"]\n";
  const auto route = with("[[route]]\n");
  expect_taken(
      {{limited_rule(), "path = \"/a\"\n", "match = { path = \"/a\" }"},
       {limited_rule(), "method = \"POST\"\n", "match = { methods = [\"POST\"] }"},
       {limited_rule(), "methods = [\"GET\", \"PUT\"]\n", "match = { methods = [\"GET\", \"PUT\"] }"},
       {limited_rule(), "methods = \"GET\"\n", "match = { methods = \"GET\" }"},
       {limited_rule(), "host = [\"a.example\"]\n", "match = { host = [\"a.example\"] }"},
       {limited_rule(), "ip = \"10.0.0.0/8\"\n", "match = { ip = \"10.0.0.0/8\" }"},
       {limited_rule(), "status_code = [429]\n", "status = 429"},
       {limited_rule(), "code = \"503\"\n", "status = 503"},
       {limited_rule(), "dry_run = true\n", "mode = \"shadow\""},
       {limited_rule(), "by = \"ip\"\n", "key = [\"ip\"]"},
       {leased("limit = \"10/s\"\n"), "fail_open = true\n", "on_store_failure = \"open\""},
       {upstream, "server = \"a:1\"\n", "servers = [\"a:1\"]"},
       {upstream, "backends = \"a:1\"\n", "servers = [\"a:1\"]"},
       {served, "timeout = 30\n", "timeouts = { response = \"30s\" }"},
       {served, "retries = \"3\"\n", "retry = { attempts = 3 }"},
       {served, "health = \"/x\"\n", "health = { path = \"/x\" }"},
       {served, "health = true\n", "health = { path = \"/healthz\" }"},
       {served, "balance = \"least_conn\"\n", "balance = \"least_in_flight\""},
       {route, "return = \"403\"\n", "respond = { status = 403 }"},
       {route, "status = [403]\n", "respond = { status = 403 }"},
       {route, "backend = \"api\"\n", "upstream = \"api\""},
       {server(), "client_max_body_size = \"8m\"\n", "max_body = \"8MiB\""},
       {server(), "worker_processes = \"auto\"\n", "workers = 0"},
       {with("[client]\n"), "api_key = \"X-Key\"\n", "api_key = { header = \"X-Key\" }"}});
}

TEST(Advice, AdviceForAPluralTableHeaderIsTheSingularTableHeader) {
  for (const auto& [text, advice] :
       {std::pair{"[rules]\nname = \"x\"\nlimit = \"1/s\"\n", "write [[rule]] instead of [rules]"},
        {"[[rules]]\nname = \"x\"\nlimit = \"1/s\"\n", "write [[rule]] instead of [[rules]]"},
        {"[routes]\nrespond = { status = 200 }\n", "write [[route]] instead of [routes]"},
        {"[[upstreams]]\nname = \"b\"\nservers = [\"a:1\"]\n", "write [[upstream]] instead of [[upstreams]]"},
        {"[clients]\nipv6_prefix = 64\n", "write [client] instead of [clients]"}}) {
    const auto messages = mistakes_in(with(text));
    ASSERT_THAT(messages, SizeIs(1)) << text;
    EXPECT_THAT(messages.front(), ::testing::EndsWith(std::string("unknown key; ") + advice));
    auto fixed = std::string(text);
    const auto header = std::string(advice).substr(6, std::string(advice).find(" instead of") - 6);
    fixed.replace(0, fixed.find('\n'), header);
    EXPECT_THAT(mistakes_in(with(fixed)), IsEmpty()) << fixed;
  }
}

}  // namespace
}  // namespace weir::config::test
