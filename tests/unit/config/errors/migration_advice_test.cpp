// Tests messages about settings in the spelling of other proxies. Each message ends with the line to write.
#include "config/errors/other_spellings.hpp"
#include "unit/config/configuration.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(MigrationAdvice, ErrorAboutAMisspeltRateShowsTheCorrectLimit) {
  for (const auto& [text, line] : {std::pair{"rate = \"10r/s\"\n", "limit = \"10/s\""},
                                   {"rate = 10\n", "limit = \"10/s\""},
                                   {"rate = \"10/second\"\n", "limit = \"10/s\""},
                                   {"average = 100\nperiod = \"1m\"\n", "limit = \"100/1m\""},
                                   {"requests = 5\nwindow = 60\n", "limit = \"5/60s\""},
                                   {"requests_per_unit = 5\nunit = \"minute\"\n", "limit = \"5/min\""},
                                   {"count = 2\ntime_window = 60\n", "limit = \"2/60s\""},
                                   {"limit = 100\nwindow = \"1h\"\n", "limit = \"100/1h\""}})
    EXPECT_THAT(mistakes_in(rule(text)), Contains(EndsWith(std::string("unknown key; write ") + line)))
        << text;
}

TEST(MigrationAdvice, ErrorAboutAKeyOfAnotherProxyShowsTheKeyOfWeir) {
  for (const auto& [text, line] :
       {std::pair{"zone = \"one:10m\"\n", "zone: unknown key; leave it out: each rule has its own counters"},
        {"nodelay = true\n",
         "nodelay: unknown key; leave it out: a token_bucket refuses requests above burst"},
        {"path = \"/login\"\n", "path: unknown key; write match = { path = \"/login\" }"},
        {"dry_run = true\n", "dry_run: unknown key; write mode = \"shadow\""},
        {"status_code = 503\n", "status_code: unknown key; write status = 503"},
        {"key = \"ip\"\n", "key: found a string; expected a list of strings: write key = [\"ip\"]"},
        {"charge = { status = [401, 403] }\n", "write status = [\"401\", \"403\"]"},
        {"charge = { status = 401 }\n", "write status = \"401\""},
        {"charge = \"401\"\n", "write charge = { status = \"401\" }"},
        {"burst = \"100\"\n", "write burst = 100"},
        {"limit = 10\n", "write limit = \"10/s\""},
        {"limit = \"10/second\"\n", "\"10/second\" is not a rate (unknown period); write limit = \"10/s\""},
        {"limit = \"10 / s\"\n", "write limit = \"10/s\""},
        {"limit = \"10 per minute\"\n", "write limit = \"10/min\""},
        {"limit = \"100r/m\"\n", "write limit = \"100/m\""},
        {"limit = \"10/week\"\n", "write limit = \"10/7days\""},
        {"limit = \"10/s\"\nwindow = \"1min\"\n",
         "window: unknown key; leave it out: limit = \"10/s\" contains"},
        {"key = [\"$binary_remote_addr\"]\n", "\"$binary_remote_addr\" is not an attribute; write \"ip\""},
        {"key = [\"remote_addr\"]\n", "write \"ip\""},
        {"key = [\"$http_x_api_key\"]\n", "write \"header:x-api-key\""},
        {"key = [\"X-Tenant\"]\n", "write \"header:X-Tenant\""},
        {"algorithm = \"sliding\"\n", "write algorithm = \"sliding_window\""},
        {"mode = \"dry_run\"\n", "found \"dry_run\"; write mode = \"shadow\""},
        {"match = \"/a\"\n", "write match = { path = \"/a\" }"}})
    EXPECT_THAT(mistakes_in(rule(text)), Contains(HasSubstr(line))) << text;
}

TEST(MigrationAdvice, ErrorAboutACommonMistakeOutsideARuleShowsTheCorrectLine) {
  for (const auto& [text, line] :
       {std::pair{"[log]\nlevel = \"warning\"\n", "log.level: found \"warning\"; write level = \"warn\""},
        {"[[listener]]\naddress = \"a:1\"\ntls = { cert = \"a\", key = \"b\" }\n",
         "tls.cert: unknown key; write certificates = [{ cert = \"a\", key = \"b\" }]"},
        {"[[listener]]\naddress = 8080\n", "write address = \"127.0.0.1:8080\""},
        {"[[listener]]\nlisten = \"127.0.0.1:80\"\n", "write address = \"127.0.0.1:80\""},
        {"[[listener]]\nport = 80\n", "write address = \"127.0.0.1:80\""},
        {"[[listener]]\nbind = \":80\"\n", "write address = \"127.0.0.1:8080\""},
        {"[server]\nmin_rate = \"500B/s\"\n", "write min_rate = \"500B\""},
        {"[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nhealth = \"/x\"\n",
         "health: found a string; expected a table: write health = { path = \"/x\" }"},
        {"[[upstream]]\nname = \"b\"\nserver = \"a:1\"\n", "write servers = [\"a:1\"]"},
        {"[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nbalance = \"least_conn\"\n",
         "write balance = \"least_in_flight\""},
        {"[client]\napi_key = \"X-Key\"\n", "write api_key = { header = \"X-Key\" }"},
        {"[server]\ndrain = 30\n", "write drain = \"30s\""},
        {"[server]\ndrain = \"30 seconds\"\n", "\"30 seconds\" is not a duration; write drain = \"30s\""},
        {"[server]\ndrain = \"5 minutes\"\n", "write drain = \"5min\""},
        {"[server]\nforwarded = \"yes\"\n", "write forwarded = true"},
        {"[server]\nworkers = \"4\"\n", "write workers = 4"},
        {"[[route]]\npath = \"/a\"\n", "write match = { path = \"/a\" }"}})
    EXPECT_THAT(mistakes_in(with(text)), Contains(HasSubstr(line))) << text;
}

TEST(MigrationAdvice, ErrorAboutATableInTheWrongPlaceSaysWhereItBelongs) {
  for (const auto& [text, line] :
       {std::pair{"[tls]\ncert = \"a\"\n", "tls: unknown key; write [listener.tls] below its [[listener]]"},
        {"[match]\npath = \"/a\"\n", "match: unknown key; write [rule.match] below its [[rule]]"},
        {"[tiers.gold]\nlimit = \"1/s\"\n", "tiers: unknown key; write [rule.tiers.NAME] below its [[rule]]"},
        {"[jwt]\nsecret = \"a\"\n", "jwt: unknown key; write [client.jwt]"},
        {"[[key]]\nkey = \"a\"\n", "key: unknown key; write it in a file of API keys"},
        {"[[frontend]]\nbind = \"a\"\n", "frontend: unknown key; write [[listener]] with address"},
        {"[metrics]\nport = 1\n", "metrics: unknown key; write [admin] with address"}})
    EXPECT_THAT(mistakes_in(with(text)), Contains(HasSubstr(line))) << text;
}

TEST(MigrationAdvice, ErrorAboutWrongBracketsShowsTheCorrectTableHeader) {
  for (const char* name : {"rule", "route", "listener", "upstream", "alert"}) {
    const std::string word(name);
    EXPECT_THAT(mistakes_in("[" + word + "]\nname = \"x\"\n"),
                Contains(HasSubstr(": found a table; expected a list of tables: write [[" + word +
                                   "]] instead of [" + word + "]")))
        << word;
  }
  for (const char* name : {"server", "admin", "log", "client", "state"}) {
    const std::string word(name);
    EXPECT_THAT(mistakes_in(with("[[" + word + "]]\n")),
                Contains(HasSubstr("write [" + word + "] instead of [[" + word + "]]")))
        << word;
  }
}

// weir must accept the rates and durations that its messages suggest.
TEST(MigrationAdvice, RatesAndDurationsThatErrorsSuggestAreValid) {
  for (const char* text :
       {"10r/s", "10 requests per second", "5/minute", "1/hours", "3/2weeks", "20 / 10 secs"}) {
    const auto near = nearest_rate(text);
    ASSERT_TRUE(near) << text;
    EXPECT_TRUE(limit::parse_rate(*near)) << *near;
  }
  for (const char* text : {"10/s", "fast", "10", "/s", "10/fortnight", "0/s", "1.5/s"})
    EXPECT_FALSE(nearest_rate(text)) << text;
  for (const char* text : {"30s", "soon", "", "1.5s", "week and a half"})
    EXPECT_FALSE(nearest_duration(text)) << text;
}

}  // namespace
}  // namespace weir::config::test
