// Tests how weir reads the cost in a streamed response. The streams have the forms that providers of language
// models document.
#include "weir/policy/stream_cost.hpp"

#include "unit/policy/reported_cost.hpp"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::policy {

namespace {

using http::StreamFormat;

Settlement sum_of(std::vector<CostTerm> terms) {
  return {.kind = Settlement::Kind::Json, .terms = std::move(terms)};
}

const Settlement kOpenAi = sum_of({{{"/usage/total_tokens", "/response/usage/total_tokens"}}});
const Settlement kAnthropic =
    sum_of({{{"/usage/input_tokens", "/message/usage/input_tokens"}}, {{"/usage/output_tokens"}}});
const Settlement kOllama = sum_of({{{"/prompt_eval_count"}}, {{"/eval_count"}}});

const std::string kChat =
    "data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"Hi\"}}],\"usage\":null}\n\n"
    "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":19,\"completion_tokens\":10,"
    "\"total_tokens\":29}}\n\ndata: [DONE]\n\n";
const std::string kResponses =
    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n"
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"In\"}\n\n"
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":"
    "{\"input_tokens\":37,\"output_tokens\":11,\"total_tokens\":48}}}\n\n";
const std::string kMessages =
    "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,"
    "\"output_tokens\":1}}}\r\n\r\nevent: ping\r\ndata: {\"type\": \"ping\"}\r\n\r\n"
    "event: message_delta\r\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\r\n\r\n"
    "event: message_delta\r\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":null,"
    "\"output_tokens\":15}}\r\n\r\nevent: message_stop\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n";
const std::string kLines =
    "{\"message\":{\"content\":\"The\"},\"done\":false}\n"
    "{\"done\":true,\"prompt_eval_count\":26,\"eval_count\":259}\n";

ReportedCost told(const Settlement& settlement, std::string_view stream,
                  StreamFormat format = StreamFormat::Events) {
  StreamCost cost(settlement, format);
  cost.read(stream);
  return cost.finish();
}

TEST(StreamCost, ReadsTheUsageOfEachProvider) {
  EXPECT_EQ(told(kOpenAi, kChat), amount(29));
  EXPECT_EQ(told(kOpenAi, kResponses), amount(48));
  EXPECT_EQ(told(kAnthropic, kMessages), amount(40))
      << "25 + 15: null is no value, and the last value counts";
  EXPECT_EQ(told(kOllama, kLines, StreamFormat::Lines), amount(285));
}

TEST(StreamCost, CountsOnlyTheEventsThatContainJson) {
  const auto records = [](std::string_view stream) {
    StreamCost cost(kOpenAi, StreamFormat::Events);
    cost.read(stream);
    return cost.records();
  };
  EXPECT_EQ(records(kChat), 2U) << "[DONE] is no JSON";
  EXPECT_EQ(records(kMessages), 5U);
  EXPECT_EQ(records("data: {}\n\ndata: {\n\n: {}\n\ndata: 1"), 1U);
}

TEST(StreamCost, StreamWithoutUsageStatesNoCost) {
  for (const auto* stream :
       {"", "data: [DONE]\n\n", "data: {\"usage\":null}\n\n", "data: {\"usage\":{}}\n\n",
        "{\"usage\":{\"total_tokens\":5}}\n\n", "data: {\"usage\":{\"total_tokens\":5}\n\n",
        "event: {\"usage\":{\"total_tokens\":5}}\n\n"})
    EXPECT_EQ(told(kOpenAi, stream), kNothing) << stream;
}

TEST(StreamCost, JoinsTheDataLinesOfAnEvent) {
  EXPECT_EQ(told(kOpenAi, "data: {\"usage\":\ndata:{\"total_tokens\":\ndata: 5}}\n\n"), amount(5));
  EXPECT_EQ(told(kOpenAi, "data: {\"usage\":{\"total_tokens\":1\ndata: 2}}\n\n"), kNothing)
      << "a line break divides the number";
}

TEST(StreamCost, ReadsTheLastEventEvenIfNoEmptyLineFollows) {
  EXPECT_EQ(told(kOpenAi, "data: {\"usage\":{\"total_tokens\":5}}"), amount(5));
}

TEST(StreamCost, CostIsUnreadableIfTheLastReportedValueIsInvalid) {
  const std::string bad = "data: {\"usage\":{\"total_tokens\":-1}}\n\n";
  const std::string twice = "data: {\"usage\":{\"total_tokens\":1,\"total_tokens\":2}}\n\n";
  const std::string good = "data: {\"usage\":{\"total_tokens\":7}}\n\n";
  EXPECT_EQ(told(kOpenAi, good + bad), kUnreadable);
  EXPECT_EQ(told(kOpenAi, good + twice), kUnreadable);
  EXPECT_EQ(told(kOpenAi, bad + twice + good), amount(7));
}

TEST(StreamCost, UsageIsFoundInAnEventWithVeryLongTexts) {
  const std::string text(3 << 20, 'x');
  EXPECT_EQ(told(kOpenAi, "data: {\"" + text + "\":[\"" + text + "\"],\"usage\":{\"total_tokens\":7}}\n\n"),
            amount(7));
  EXPECT_EQ(told(kOpenAi, "data: {\"usage\":{\"total_tokens\":" + std::string(5000, '1') + "}}\n\n"),
            kUnreadable);
}

TEST(StreamCost, MemoryIsSmallForUsualStreamsAndBoundedForHostileStreams) {
  const auto memory = [](const Settlement& settlement, const std::string& stream) {
    StreamCost cost(settlement, StreamFormat::Events);
    for (std::size_t at = 0; at < stream.size(); at += 1000) cost.read(stream.substr(at, 1000));
    return cost.memory();
  };
  EXPECT_LE(memory(kOpenAi, kChat), 3U << 10);
  EXPECT_LE(memory(kAnthropic, kMessages), 3U << 10);
  CostTerm term;
  std::string numbers;
  for (int i = 0; i < 32; ++i) {
    term.pointers.push_back("/" + std::to_string(i));
    numbers += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":" + std::string(4096, '1');
  }
  const std::string deep = "[" + std::string(511, '[') + "\"" + std::string(9000, 'x');
  const auto most =
      memory(sum_of({term}), "data: {" + numbers + "}\n\ndata: {" + numbers + "}\n\ndata: " + deep);
  EXPECT_LE(most, (48U + 12 * 32) << 10);
  EXPECT_GE(most, 32U * 4096) << "the memory includes the numbers";
}

TEST(StreamCost, EmptyLinesAreNotCountedAsRecords) {
  StreamCost cost(kOllama, StreamFormat::Lines);
  cost.read(std::string(1000, '\n') + kLines + std::string(1000, '\n'));
  EXPECT_EQ(cost.records(), 2U);
  EXPECT_EQ(cost.finish(), amount(285));
}

// Property: pieces of any size give the same cost as the whole stream.
TEST(StreamCost, CostDoesNotDependOnWhereTheStreamIsDivided) {
  struct Case {
    const Settlement& settlement;
    const std::string& stream;
    StreamFormat format = StreamFormat::Events;
    std::uint64_t records = 0;
  };
  const Case cases[] = {{kOpenAi, kChat, StreamFormat::Events, 2},
                        {kOpenAi, kResponses, StreamFormat::Events, 3},
                        {kAnthropic, kMessages, StreamFormat::Events, 5},
                        {kOllama, kLines, StreamFormat::Lines, 2}};
  for (const auto& [settlement, stream, format, records] : cases) {
    const auto whole = told(settlement, stream, format);
    for (std::size_t first = 0; first <= stream.size(); ++first) {
      for (std::size_t step = 1; step <= 64; step *= 4) {
        StreamCost cost(settlement, format);
        cost.read(std::string_view(stream).substr(0, first));
        for (auto at = first; at < stream.size(); at += step)
          cost.read(std::string_view(stream).substr(at, step));
        ASSERT_EQ(cost.records(), records) << first << " then by " << step;
        ASSERT_EQ(cost.finish(), whole) << first << " then by " << step;
      }
    }
  }
}

}  // namespace
}  // namespace weir::policy
