#include "weir/observe/access_record.hpp"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::observe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string line_of(const AccessRecord& record) {
  std::string out;
  append_json(out, record);
  return out;
}

AccessRecord full() {
  AccessRecord record;
  record.start = base::TimePoint{base::Duration{1'771'581'600'000'042}};
  record.total = base::Duration{1500};
  record.queued = base::Duration{1000};
  record.upstream = base::Duration{300};
  record.client = *base::IpAddress::parse("203.0.113.7");
  record.protocol = "HTTP/2";
  record.method = "GET";
  record.target = "/api/x?y=1";
  record.host = "api.example.com";
  record.paced = std::chrono::microseconds(70);
  record.route = "api";
  record.status = 200;
  record.bytes_in = 3;
  record.bytes_out = 98;
  record.verdict = "delay";
  record.rule = "per-key";
  record.key = base::Digest128{0xfedcba9876543210, 0x0123456789abcdef};
  record.server = "10.0.0.1:9000";
  record.request_id = "r-1";
  record.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  record.user_agent = "curl/7.88.1";
  record.error = "client_left";
  return record;
}

TEST(AccessRecord, WritesAllFieldsInOneLine) {
  EXPECT_EQ(
      line_of(full()),
      R"({"time":"2026-02-20T10:00:00.000042Z","client":"203.0.113.7","protocol":"HTTP/2",)"
      R"("method":"GET","target":"/api/x?y=1","host":"api.example.com","user_agent":"curl/7.88.1","request_id":"r-1",)"
      R"("trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","route":"api",)"
      R"("status":200,"bytes_in":3,"bytes_out":98,"total_us":1500,"queued_us":1000,"upstream_us":300,"paced_us":70,)"
      R"("verdict":"delay","rule":"per-key","key":"0123456789abcdeffedcba9876543210",)"
      R"("server":"10.0.0.1:9000","error":"client_left"})"
      "\n");
}

TEST(AccessRecord, WritesOnlyTheConfiguredFields) {
  auto record = full();
  record.api_key = base::Digest128{1, 2};
  record.user = "alice";
  record.country = "CH";
  LogFields fields;
  fields.add(LogField::Status).add(LogField::User).add(LogField::ApiKey);
  std::string line;
  append_json(line, record, fields);
  EXPECT_EQ(
      line,
      R"({"time":"2026-02-20T10:00:00.000042Z","status":200,"api_key":"00000000000000020000000000000001",)"
      R"("user":"alice"})"
      "\n");
  line.clear();
  append_json(line, record, LogFields{});
  EXPECT_EQ(line, "{\"time\":\"2026-02-20T10:00:00.000042Z\"}\n");
  EXPECT_THAT(line_of(record), Not(HasSubstr("alice")));  // the default fields do not include the user
}

TEST(AccessRecord, NameOfEachLogFieldEqualsItsNameInTheLine) {
  auto record = full();
  record.api_key = base::Digest128{1, 2};
  record.user = record.org = record.service = record.device = record.tier = record.country = "x";
  record.question = "{}";
  const ReplayRecord replay;
  record.replay = &replay;
  for (std::size_t i = 0; i < kLogFields; ++i) {
    std::string line;
    append_json(line, record, LogFields().add(static_cast<LogField>(i)));
    const auto parsed = boost::json::parse(line).as_object();
    EXPECT_EQ(parsed.size(), 2U) << line;
    EXPECT_TRUE(parsed.contains(std::string(kLogFieldNames[i]))) << line;
  }
}

TEST(TraceId, IsTakenOnlyFromAValidTraceparentField) {
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736", parent = "00f067aa0ba902b7";
  const auto good = "00-" + trace + "-" + parent + "-01";
  EXPECT_EQ(trace_id_of(good), trace);
  EXPECT_EQ(trace_id_of("cc-" + trace + "-" + parent + "-01-more"), trace);  // a later version of the format
  for (const auto& bad :
       {std::string(), good + "-", good + "0", good.substr(1), "ff" + good.substr(2), "0G" + good.substr(2),
        "cc-" + trace + "-" + parent + "-01more", "00-" + std::string(32, '0') + "-" + parent + "-01",
        "00-" + trace + "-" + std::string(16, '0') + "-01", "00-" + trace + "-" + parent + "-0x",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + parent + "-01", "00_" + trace + "-" + parent + "-01"})
    EXPECT_EQ(trace_id_of(bad), "") << bad;
}

TEST(AccessRecord, OmitsFieldsWithoutAValue) {
  EXPECT_EQ(line_of({}),
            R"({"time":"1970-01-01T00:00:00.000000Z","client":"::","status":0,"bytes_in":0,"bytes_out":0,)"
            R"("total_us":0})"
            "\n");
}

TEST(AccessRecord, RequestTargetCannotForgeALogLine) {
  AccessRecord record = full();
  record.target = "/\",\"status\":500}\r\n{\"forged\":\"";
  const auto line = line_of(record);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto parsed = boost::json::parse(line);
  EXPECT_EQ(parsed.at("target").as_string(), record.target);
  EXPECT_EQ(parsed.at("status").as_int64(), 200);
  EXPECT_FALSE(parsed.as_object().contains("forged"));
}

TEST(AccessRecord, EveryTextIsEscaped) {
  const std::string_view bad = "\"\n\x1b";
  AccessRecord record;
  record.protocol = record.method = record.target = record.host = record.route = record.verdict =
      record.rule = bad;
  record.server = record.request_id = record.trace_id = record.user_agent = record.error = bad;
  const auto line = line_of(record);
  const auto parsed = boost::json::parse(line).as_object();
  EXPECT_EQ(std::count_if(parsed.begin(), parsed.end(),
                          [&](const auto& member) {
                            return member.value().is_string() && member.value().as_string() == bad;
                          }),
            12);
  EXPECT_THAT(line, Not(HasSubstr("\x1b")));
}

TEST(AccessRecord, WritesAddressesInCanonicalForm) {
  for (const char* text : {"0.0.0.0", "255.255.255.255", "10.0.0.1", "2001:db8::1", "::1"}) {
    AccessRecord record;
    record.client = *base::IpAddress::parse(text);
    EXPECT_EQ(boost::json::parse(line_of(record)).at("client").as_string(), text);
  }
}

TEST(AccessRecord, WritesTheTimeOfTheLastMicrosecondOfALeapDay) {
  using namespace std::chrono;
  AccessRecord record;
  record.start = base::TimePoint{sys_days{2028y / February / 29}} + 24h - 1us;
  EXPECT_THAT(line_of(record), HasSubstr("2028-02-29T23:59:59.999999Z"));
}

TEST(AccessRecord, LineIsWrittenIntoALargeEnoughBufferWithoutReallocation) {
  std::string out;
  append_json(out, full());
  const char* const at = out.data();
  out.clear();
  append_json(out, full());
  EXPECT_EQ(out.data(), at);
}

}  // namespace
}  // namespace weir::observe
