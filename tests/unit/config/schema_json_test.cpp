// Compares the schema's regular expressions with the functions that parse the same strings.
#include "weir/config/schema_json.hpp"

#include "config/read/settings_sections.hpp"
#include "config/schema/schema.hpp"
#include "config/schema/schema_patterns.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/base/units.hpp"
#include "weir/http/cors.hpp"
#include "weir/http/grpc_status.hpp"
#include "weir/policy/hours.hpp"
#include "weir/policy/rule.hpp"
#include "weir/policy/settlement.hpp"
#include "weir/redis/redis_settings.hpp"

#include <random>
#include <regex>
#include <set>

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Read {
  std::string_view pattern;
  bool (*takes)(const std::string&);
  std::vector<std::string> pieces;  // parts that the test combines into strings
  bool exactly = true;              // false: the pattern may also match strings that the function rejects
};

const std::vector<Read>& reads() {
  static const std::vector<std::string> kAddresses = {
      "a",     "b.c", ":",     ":",  "[",        "]",       "::1", "80", "0", "65535",
      "65536", "070", "unix:", "/s", "https://", "http://", "-",   "?",  "@", " "};
  static const std::vector<Read> kReads = {
      {pattern::kDuration,
       [](const std::string& text) {
         const auto read = base::parse_duration(text);
         return read || read.error().message.find("is too large") != std::string::npos;
       },
       {"0", "1", "25", "us", "ms", "s", "sec", "m", "min", "h", "hour", "d", "day", "days", " ", ".", "-",
        "+", "w"}},
      {pattern::kSize,
       [](const std::string& text) { return static_cast<bool>(base::parse_size(text)); },
       {"0", "1", "64", "B", "kB", "KB", "MB", "GB", "KiB", "MiB", "GiB", "K", "i", " ", "-"}},
      {pattern::kRate,
       [](const std::string& text) { return static_cast<bool>(limit::parse_rate(text)); },
       {"0", "1", "10", "00", "99", "/", "/", "s", "min", "h", "day", "days", "month", " ", "-"}},
      {pattern::kAddress,
       [](const std::string& text) {
         const auto read = base::parse_endpoint(text);
         return read || read.error().message.find("ends in a number") != std::string::npos;
       },
       kAddresses},
      {pattern::kStatuses,
       [](const std::string& text) {
         const auto read = policy::parse_statuses(text);
         return read || read.error().message.find("end is below its start") != std::string::npos;
       },
       {"1", "4", "401", "599", "600", "0", "xx", "x", "-", " "}},
      {pattern::kGrpcStatus,
       [](const std::string& text) { return static_cast<bool>(http::parse_grpc_status(text)); },
       {"OK", "UNKNOWN", "UNAUTHENTICATED", "UNAVAILABLE", "_", "ok", "0", "1", "7", "16", "17", " "}},
      {pattern::kHours,
       [](const std::string& text) {
         const auto read = policy::parse_hours(text);
         return read || read.error().message.find("ends when it begins") != std::string::npos;
       },
       {"00:00", "22:30", "06:60", "24:00", "9", ":", "-", "-", "23:59", " "}},
      {pattern::kKeyPart,
       [](const std::string& text) { return static_cast<bool>(policy::parse_key_part(text)); },
       {"ip",           "api_key", "path", "|",    "|",      "header:", "query:",
        "cookie:",      ";",       "=",    " ",    "claim:", "cert:",   "subject",
        "cert:subject", "X-A",     "a",    ":",    "json:/", "json:",   "form:",
        "path:",        "path:1",  "0",    "city", "asn"}},
      {pattern::kProtocol,
       [](const std::string& text) { return text == "http/1.1" || text == "h2" || text == "h2c"; },
       {"http/", "1.1", "1.0", "h2", "h", "2", "c", "http/1.1", "H2", " "}},
      {pattern::kOrigin,
       [](const std::string& text) { return text == "*" || http::parse_origin(text); },
       {"https", "http", "://", "a.example.com", "localhost", "[::1]", ":", "8080", "80", "/", "*", "A", " "},
       false},
      {pattern::kName,
       [](const std::string& text) { return is_plain_name(text); },
       {"a", " ", "\"", "\\", "~", "\x7f", "[", "]", "é", "!"}},
      {pattern::kRedisUrl,
       [](const std::string& text) { return static_cast<bool>(redis::parse_redis_url(text)); },
       {"redis://", "rediss://", "unix://", "a", "u:p@", ":6379", "/", "0", "/s", "?db=1", "#", "%40"},
       false},
  };
  return kReads;
}

TEST(SchemaPatterns, MatchEveryTextThatTheLoaderAccepts) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const auto& read : reads()) {
    SCOPED_TRACE(read.pattern);
    const std::regex expression(whole_text(read.pattern));
    std::set<bool> seen;
    for (int i = 0; i < 4000; ++i) {
      std::string text;
      for (auto pieces = random() % 5; pieces > 0; --pieces)
        text += read.pieces[random() % read.pieces.size()];
      const bool taken = read.takes(text);
      const bool matched = std::regex_search(text, expression);
      if (read.exactly || taken) {
        EXPECT_EQ(matched, taken) << text;
      }
      seen.insert(taken);
    }
    EXPECT_EQ(seen.size(), 2u);  // the test must have tried valid strings and invalid strings
  }
}

TEST(SchemaPatterns, MatchTextsThatContainEnvironmentVariables) {
  for (const auto& read : reads())
    EXPECT_TRUE(std::regex_search("a${B:-c}", std::regex(whole_text(read.pattern)))) << read.pattern;
}

bool has_inner(Kind kind) {
  return kind == Kind::Subtable || kind == Kind::Subtables || kind == Kind::OneOrMoreTables ||
         kind == Kind::Named || kind == Kind::Mixed || kind == Kind::Each;
}

void expect_whole(const TableSpec& spec, std::set<const TableSpec*>& seen) {
  if (!seen.insert(&spec).second) return;
  for (const auto& key : spec.keys) {
    if (!key.instead.empty()) continue;
    ASSERT_EQ(key.inner != nullptr, has_inner(key.kind)) << key.name << ": see KeySpec::inner";
    if (key.inner != nullptr) expect_whole(*key.inner, seen);
  }
}

TEST(SchemaJson, DefinesTheKeysOfEveryTable) {
  std::set<const TableSpec*> seen;
  expect_whole(schema::kRoot, seen);
  for (const auto* spec : {&schema::kTls, &schema::kHttp2, &schema::kCost, &schema::kTier,
                           &schema::kServerOfUpstream, &schema::kMatch})
    EXPECT_TRUE(seen.contains(spec));
}

TEST(SchemaJson, TableOfRulesDoesNotDefineKeysOfOtherTables) {
  const auto text = schema_as_json();
  const auto rule = text.substr(text.find("\"rule\": {\n      \"type\": \"object\""));
  const auto keys = rule.substr(0, rule.find("\n    },"));
  EXPECT_THAT(keys, HasSubstr("\"mode\": {"));
  EXPECT_THAT(keys, Not(HasSubstr("\"priority\"")));
}

}  // namespace
}  // namespace weir::config::test
