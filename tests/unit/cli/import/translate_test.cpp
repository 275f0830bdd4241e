#include "cli/import/syntax/nginx_files.hpp"
#include "unit/cli/import/translation.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cli::nginx {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Translate, WeirAcceptsTheTranslationOfEverySample) {
  const std::filesystem::path folder = WEIR_TREE "/tests/unit/cli/import/samples";
  int samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".conf") continue;
    const auto directives = read_nginx_files(entry.path().string());
    ASSERT_TRUE(directives.has_value()) << directives.error().message;
    const auto result = translation(*directives);
    EXPECT_THAT(mistakes_of(result.toml), IsEmpty()) << entry.path() << '\n' << result.toml;
    ++samples;
  }
  EXPECT_GE(samples, 3);
}

constexpr const char* kZone = "limit_req_zone $binary_remote_addr zone=z:1m rate=10r/s;";

TEST(Translate, LimitReqWithBurstAndNodelayBecomesGcra) {
  EXPECT_THAT(of_location("limit_req zone=z burst=20 nodelay;", kZone).toml,
              HasSubstr("name = \"z\"\nkey = [\"ip\"]\nalgorithm = \"gcra\"\nlimit = \"10/s\"\nburst = "
                        "20\nstatus = 503\n"));
}

TEST(Translate, LimitReqWithBurstButWithoutNodelayBecomesAQueue) {
  EXPECT_THAT(of_location("limit_req zone=z burst=20;", kZone).toml,
              HasSubstr("algorithm = \"leaky_bucket\"\nlimit = \"10/s\"\nqueue = 20\n"));
  EXPECT_THAT(of_location("limit_req zone=z;", kZone).toml,
              HasSubstr("algorithm = \"gcra\"\nlimit = \"10/s\"\nburst = 0\n"));
}

TEST(Translate, LimitReqWithDelayBecomesGcraAndIsReported) {
  const auto result = of_location("limit_req zone=z burst=20 delay=8;", kZone);
  EXPECT_THAT(result.toml, HasSubstr("algorithm = \"gcra\"\nlimit = \"10/s\"\nburst = 20\n"));
  EXPECT_THAT(result.notes, Contains(HasSubstr("n.conf:1: limit_req: delay=8: no equal")));
}

TEST(Translate, RatesAreRoundedDownToThousandthsPerSecondAsInNginx) {
  const auto rate = [](const std::string& text) {
    return of_location("limit_req zone=z;", "limit_req_zone $binary_remote_addr zone=z:1m rate=" + text + ";")
        .toml;
  };
  EXPECT_THAT(rate("30r/m"), HasSubstr("limit = \"30/min\"\n"));
  EXPECT_THAT(rate("10r/m"), HasSubstr("limit = \"166/1000s\"\n"));
  EXPECT_THAT(rate("1r/m"), HasSubstr("limit = \"16/1000s\"\n"));
}

TEST(Translate, LocationInheritsLimitReqStatusAndDryRunThatFollowItInTheFile) {
  const auto toml = of(std::string(kZone) +
                       "server { location / { limit_req zone=z; proxy_pass http://127.0.0.1:1; } "
                       "limit_req_status 429; limit_req_dry_run on; }")
                        .toml;
  EXPECT_THAT(toml, HasSubstr("mode = \"shadow\"\nstatus = 429\n"));
}

TEST(Translate, LimitConnBecomesAConcurrencyLimit) {
  EXPECT_THAT(
      of_location("limit_conn c 5;", "limit_conn_zone $binary_remote_addr zone=c:1m;").toml,
      HasSubstr("name = \"c\"\nkey = [\"ip\"]\nalgorithm = \"concurrency\"\nlimit = 5\nstatus = 503\n"));
}

std::string key_of(const std::string& key) {
  const auto toml = of_location("limit_req zone=z;", "limit_req_zone " + key + " zone=z:1m rate=1r/s;").toml;
  const auto begin = toml.find("key = ");
  return begin == std::string::npos ? "none" : toml.substr(begin, toml.find("\nalgorithm") - begin);
}

TEST(Translate, KeyOfALimitReqZoneBecomesTheKeyOfTheRule) {
  EXPECT_EQ(key_of("$remote_addr"), "key = [\"ip\"]");
  EXPECT_EQ(key_of("$http_x_api_key"), "key = [\"header:X-Api-Key\"]");
  EXPECT_EQ(key_of("${arg_user}"), "key = [\"query:user\"]");
  EXPECT_EQ(key_of("$cookie_sid"), "key = [\"cookie:sid\"]");
  EXPECT_EQ(key_of("$host$uri"), "key = [\"host\", \"path\"]");
  EXPECT_EQ(key_of("\"$binary_remote_addr:$http_x_t\""),
            "key = [\"ip\", \"header:X-T\"]\non_missing = \"ip\"");
  EXPECT_EQ(key_of("all"), "key = []");
}

TEST(Translate, LimitKeyedByServerNameBecomesARuleForEachNamedServer) {
  const auto toml = of("limit_req_zone $server_name zone=z:1m rate=1r/s; limit_req zone=z; "
                       "server { server_name a.example; location / { proxy_pass http://127.0.0.1:1; } } "
                       "server { server_name b.example; location / { proxy_pass http://127.0.0.1:1; } } "
                       "server { listen 81; location / { proxy_pass http://127.0.0.1:1; } }")
                        .toml;
  EXPECT_THAT(toml, HasSubstr("name = \"z\"\nmatch = { route = \"b.example /\" }\nkey = []\n"));
  EXPECT_THAT(toml, HasSubstr("name = \"z-2\"\nmatch = { route = \"a.example /\" }\nkey = []\n"));
  EXPECT_THAT(toml, Not(HasSubstr("z-3")));
}

TEST(Translate, LimitKeyedByAnUnknownVariableIsLeftOutAndReported) {
  const auto result = of_location("limit_req zone=z;", "map $a $b {} limit_req_zone $b zone=z:1m rate=1r/s;");
  EXPECT_THAT(result.toml, Not(HasSubstr("[[rule]]")));
  EXPECT_THAT(result.notes, Contains(HasSubstr("limit_req_zone: key $b: no equal")));
  EXPECT_THAT(result.notes, Contains(HasSubstr("limit_req: not imported, because the zone z is not")));
}

TEST(Translate, LimitAppliesToTheRoutesOfAllLocationsThatUseItsZone) {
  const auto toml =
      of(std::string(kZone) +
         "server { location / { proxy_pass http://127.0.0.1:1; } location /a/ { limit_req zone=z; "
         "proxy_pass http://127.0.0.1:1; } location /b/ { limit_req zone=z; proxy_pass http://127.0.0.1:1; } "
         "}")
          .toml;
  EXPECT_THAT(toml, HasSubstr("match = { route = [\"server1 /a/\", \"server1 /b/\"] }\nkey"));
}

TEST(Translate, LimitDoesNotApplyToALocationWithReturn) {
  const auto toml = of(std::string(kZone) +
                       "limit_req zone=z; server { location / { proxy_pass http://127.0.0.1:1; } "
                       "location = /ping { default_type text/css; return 200 \"pong\\n\"; } }")
                        .toml;
  EXPECT_THAT(toml, HasSubstr("match = { route = \"server1 /\" }\nkey"));
  EXPECT_THAT(toml, HasSubstr("respond = { body = \"pong\\n\", content_type = \"text/css\" }"));
}

TEST(Translate, LocationLimitReplacesTheInheritedLimit) {
  const auto toml = of(std::string(kZone) +
                       "limit_req_zone $host zone=y:1m rate=1r/s; limit_req zone=z; server { "
                       "location / { proxy_pass http://127.0.0.1:1; } location /y/ { limit_req zone=y; "
                       "proxy_pass http://127.0.0.1:1; } }")
                        .toml;
  EXPECT_THAT(toml, HasSubstr("name = \"y\"\nmatch = { route = \"server1 /y/\" }"));
  EXPECT_THAT(toml, HasSubstr("name = \"z\"\nmatch = { route = \"server1 /\" }"));
}

TEST(Translate, ZoneUsedWithTwoBurstsBecomesTwoRulesAndIsReported) {
  const auto result = of(std::string(kZone) +
                         "\nserver { location / { limit_req zone=z; proxy_pass http://127.0.0.1:1; }\n"
                         "location /a/ { limit_req zone=z burst=5; proxy_pass http://127.0.0.1:1; } }");
  EXPECT_THAT(result.toml, HasSubstr("name = \"z-2\"\n"));
  EXPECT_THAT(result.notes, Contains(HasSubstr("limit_req: nginx counts this together with n.conf:")));
}

TEST(Translate, AllowAndDenyBecomeRoutesInTheSameOrder) {
  const auto toml = of_location("deny 10.1.0.0/16; allow 10.0.0.0/8; deny all;").toml;
  const auto first = toml.find("match = { ip = \"10.1.0.0/16\" }\nrespond = { status = 403 }");
  const auto second = toml.find("match = { ip = \"10.0.0.0/8\" }\nupstream = ");
  const auto third = toml.find("name = \"server1 / #3\"\nrespond = { status = 403 }");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(third, std::string::npos) << toml;
}

TEST(Translate, AddressBitsBeyondThePrefixLengthAreIgnored) {
  const auto result =
      of_location("deny 10.1.2.3/8; deny 2001:db8::1/32; deny 10.0.0.0/33;",
                  "set_real_ip_from 192.0.2.9/24; real_ip_header X-Forwarded-For; real_ip_recursive on;");
  EXPECT_THAT(result.toml, HasSubstr("ip = [\"10.0.0.0/8\", \"2001:db8::/32\"]"));
  EXPECT_THAT(result.toml, HasSubstr("trusted_proxies = [\"192.0.2.0/24\"]"));
  EXPECT_THAT(result.notes, Contains(HasSubstr("deny: no equal for \"10.0.0.0/33\"")));
}

TEST(Translate, LocationWithAuthBasicAnswers403) {
  const auto result = of_location("auth_basic \"who\";");
  EXPECT_THAT(result.toml, HasSubstr("respond = { status = 403 }"));
  EXPECT_THAT(result.toml, Not(HasSubstr("upstream = ")));
  EXPECT_THAT(result.notes, Contains(HasSubstr("auth_basic: no equal; weir answers 403")));
}

TEST(Translate, MaxBodyEqualsClientMaxBodySizeOfNginx) {
  EXPECT_THAT(of_location("").toml, HasSubstr("[server]\nmax_body = \"1MiB\"\n"));
  EXPECT_THAT(of_location("client_max_body_size 0;").toml, Not(HasSubstr("max_body")));
  const auto toml =
      of("server { location / { proxy_pass http://127.0.0.1:1; } location /a/ { client_max_body_size 10m; "
         "proxy_pass http://127.0.0.1:1; } }")
          .toml;
  EXPECT_THAT(toml, HasSubstr("max_body = \"10MiB\"\n"));
  EXPECT_THAT(toml, Not(HasSubstr("[server]")));
}

TEST(Translate, UpstreamKeepsItsServersBalancingMethodAndTimeouts) {
  const auto toml =
      of_location(
          "",
          "upstream u { least_conn; server a.example max_fails=2 fail_timeout=5s; server b.example:81 "
          "weight=2 max_conns=9; server c.example backup; keepalive 8; }")
          .toml;
  EXPECT_THAT(toml, Not(HasSubstr("name = \"u\"")));
  const auto used =
      of("upstream u { least_conn; server a.example max_fails=2 fail_timeout=5s; server b.example:81 "
         "weight=2 max_conns=9; server c.example backup; keepalive 8; } "
         "server { location / { proxy_pass https://u; proxy_read_timeout 1m30s; } }");
  EXPECT_THAT(used.toml, HasSubstr("name = \"u\"\nservers = [\"https://a.example:80\", { address = "
                                   "\"https://b.example:81\", weight = 2, max_in_flight = 9 }]\n"
                                   "balance = \"least_in_flight\"\nmax_idle = 8\n"
                                   "eject = { failures = 2, least = \"5s\", most = \"5s\" }\n"
                                   "timeouts = { response = \"90s\" }\ntls = { verify = false }\n"));
  EXPECT_THAT(used.notes, Contains(HasSubstr("server: backup: no equal; the server is left out")));
}

TEST(Translate, LocationWithDifferentTimeoutsGetsItsOwnUpstream) {
  const auto toml =
      of("upstream u { server 10.0.0.1; } server { location / { proxy_pass http://u; } location /slow/ { "
         "proxy_pass http://u; proxy_read_timeout 5m; } }")
          .toml;
  EXPECT_THAT(toml, HasSubstr("name = \"u\"\n"));
  EXPECT_THAT(toml, HasSubstr("name = \"u #2\"\n"));
}

TEST(Translate, DefaultServerMatchesAllOtherHosts) {
  const auto toml = of("server { server_name a.example; location / { proxy_pass http://127.0.0.1:1; } } "
                       "server { server_name *.b.example; location / { proxy_pass http://127.0.0.1:2; } }")
                        .toml;
  EXPECT_LT(toml.find("match = { host = \"*.b.example\" }"), toml.find("name = \"a.example /\"\nupstream"));
}

TEST(Translate, ListenersWithDifferentServersGetNamesThatTheirRoutesMatch) {
  const auto toml = of("server { listen 80; location / { proxy_pass http://127.0.0.1:1; } } "
                       "server { listen 81; location / { proxy_pass http://127.0.0.1:2; } }")
                        .toml;
  EXPECT_THAT(toml, HasSubstr("name = \"0.0.0.0:81\"\naddress = \"0.0.0.0:81\"\n"));
  EXPECT_THAT(toml, HasSubstr("match = { listener = \"0.0.0.0:81\" }"));
  EXPECT_THAT(of("server { listen 80; listen [::]:80; }").toml, Not(HasSubstr("0.0.0.0")));
}

TEST(Translate, ProxiesAreTrustedOnlyIfNginxReadsXForwardedFor) {
  EXPECT_THAT(
      of_location("", "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; real_ip_recursive on;")
          .toml,
      HasSubstr("trusted_proxies = [\"10.0.0.0/8\"]"));
  const auto other = of_location("", "set_real_ip_from 10.0.0.0/8;");
  EXPECT_THAT(other.toml, Not(HasSubstr("trusted_proxies")));
  EXPECT_THAT(other.notes, Contains(HasSubstr("set_real_ip_from: no equal with real_ip_header X-Real-IP")));
}

TEST(Translate, SecondAccessLogIsReportedUnlessItIsTheSameFile) {
  const auto result = of("access_log logs/a.log; server { access_log logs/a.log; } server { access_log b; }");
  EXPECT_THAT(result.toml, HasSubstr("access = \"/etc/nginx/logs/a.log\""));
  EXPECT_THAT(result.notes, Not(Contains(HasSubstr("logs/a.log: not imported"))));
  EXPECT_THAT(result.notes, Contains(HasSubstr("b: not imported; weir has one access log")));
}

TEST(Translate, UnknownDirectivesAreReportedWithTheirLine) {
  const auto result =
      of("gzip on;\nserver {\n location / {\n  limit_rate 10k;\n proxy_pass http://127.0.0.1:1;\n"
         "proxy_set_header Host $host; } tcp_nodelay on; }");
  EXPECT_THAT(result.notes,
              ElementsAre("n.conf:1: gzip: no equal",
                          "n.conf:4: limit_rate: not imported; weir: bandwidth = \"…\" on a rule"));
}

TEST(Translate, WorkerProcessesBecomeWorkersAndAFileWithoutAServerBlockIsRejected) {
  EXPECT_THAT(of("worker_processes 3; http { server { } } stream { }").toml, HasSubstr("workers = 3\n"));
  Notes notes;
  EXPECT_EQ(translate({}, "/", notes).error().message, "there is no server block; weir import needs one");
}

TEST(NginxFiles, IncludePatternIsResolvedInTheFolderOfTheFirstFile) {
  const std::filesystem::path folder = testing::TempDir() + "/weir-import-includes";
  std::filesystem::create_directories(folder / "sites");
  std::ofstream(folder / "nginx.conf") << "a;\nhttp { include sites/*.conf; include none/*.conf; }\n";
  std::ofstream(folder / "sites/b.conf") << "b 2;";
  std::ofstream(folder / "sites/a.conf") << "\ninclude sites/c.inc;";
  std::ofstream(folder / "sites/c.inc") << "c 1;";
  std::ofstream(folder / "loop.conf") << "include loop.conf;";
  std::ofstream(folder / "missing.conf") << "a;\ninclude missing.inc;";
  const auto all = read_nginx_files((folder / "nginx.conf").string());
  ASSERT_TRUE(all.has_value()) << all.error().message;
  ASSERT_EQ(all->at(1).block.size(), 2u);
  EXPECT_EQ(all->at(1).block[0].position.text(), (folder / "sites/c.inc:1").string());
  EXPECT_EQ(all->at(1).block[1].name, "b");
  EXPECT_THAT(read_nginx_files((folder / "loop.conf").string()).error().message,
              HasSubstr("loop.conf:1: files include files more than 16 deep"));
  EXPECT_THAT(read_nginx_files((folder / "missing.conf").string()).error().message,
              HasSubstr("missing.conf:2: include: "));
}

TEST(NginxFiles, ErrorNamesAnIncludedFolderThatCannotBeRead) {
  const std::filesystem::path folder = testing::TempDir() + "/weir-import-folders";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink("loop", folder / "loop");
  std::ofstream(folder / "nginx.conf") << "a;\ninclude loop/*.conf;";
  EXPECT_THAT(
      read_nginx_files((folder / "nginx.conf").string()).error().message,
      testing::AllOf(HasSubstr("nginx.conf:2: include: "),
                     HasSubstr("loop/*.conf: cannot read a folder: Too many levels of symbolic links")));
}

}  // namespace
}  // namespace weir::cli::nginx
