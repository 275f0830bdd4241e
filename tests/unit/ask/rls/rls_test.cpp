#include "weir/ask/rls.hpp"

#include "unit/ask/rls/protobuf.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>

namespace weir::ask {
namespace {

using namespace std::chrono_literals;
using protozero::pbf_writer;

void add_entry(pbf_writer& descriptor, const std::string& key, const std::string& value) {
  pbf_writer entry(descriptor, 1);
  entry.add_string(1, key);
  entry.add_string(2, value);
}

// Returns a call with one descriptor, which has the entry (path, /login).
std::string simple_call(std::uint32_t hits = 0) {
  std::string text;
  pbf_writer call(text);
  call.add_string(1, "edge");
  {
    pbf_writer descriptor(call, 2);
    add_entry(descriptor, "path", "/login");
  }
  if (hits != 0) call.add_uint32(3, hits);
  return text;
}

// Returns a UInt64Value message.
std::string uint64_value(std::uint64_t value) {
  std::string text;
  pbf_writer(text).add_uint64(1, value);
  return text;
}

// Returns a call whose one descriptor has its own cost: its field hits_addend, once for each of the messages.
std::string call_with_cost(std::initializer_list<std::string> hits_addend) {
  std::string text;
  pbf_writer call(text);
  call.add_string(1, "edge");
  {
    pbf_writer descriptor(call, 2);
    add_entry(descriptor, "tokens", "all");
    for (const auto& message : hits_addend) descriptor.add_message(3, message);
  }
  return text;
}

std::string fault_of(const std::string& text) {
  const auto call = read_rls_call(text);
  return call ? "" : call.error().message;
}

TEST(RlsCall, HasTheDomainTheEntriesAndTheCostOfTheMessage) {
  const auto text = simple_call(7);
  const auto call = read_rls_call(text);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->domain, "edge");
  EXPECT_EQ(call->hits, 7U);
  ASSERT_EQ(call->descriptors.size(), 1U);
  EXPECT_TRUE(call->descriptors[0].exact);
  EXPECT_FALSE(call->descriptors[0].cost);
  ASSERT_EQ(call->descriptors[0].entries.size(), 1U);
  EXPECT_EQ(call->descriptors[0].entries[0].key, "path");
  EXPECT_EQ(call->descriptors[0].entries[0].value, "/login");
}

TEST(RlsCall, StatesNoCostWithoutHitsAddend) {
  const auto text = simple_call();
  EXPECT_FALSE(read_rls_call(text)->hits);
}

// Protobuf libraries omit a number that is 0. So a descriptor may state the hits_addend 0 by an empty
// message.
TEST(RlsCall, DescriptorWithAHitsAddendOfZeroIsACheck) {
  for (const auto& hits : {std::string("\x08\x00", 2), std::string()}) {
    const auto read = read_rls_call(call_with_cost({hits}));
    ASSERT_TRUE(read);
    ASSERT_EQ(read->descriptors.size(), 1U);
    EXPECT_EQ(read->descriptors[0].entries.size(), 1U);
    EXPECT_EQ(read->descriptors[0].cost, 0U);
  }
}

TEST(RlsCall, DescriptorsMayStateTheirOwnCost) {
  const auto read = read_rls_call(call_with_cost({uint64_value(90)}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->descriptors[0].cost, 90U);
}

// Protobuf: the last value of a repeated field counts, and repeated messages are merged.
TEST(RlsCall, LastValueOfARepeatedCostCounts) {
  const auto hits_of = [](const std::string& more) { return read_rls_call(simple_call(7) + more)->hits; };
  EXPECT_EQ(hits_of("\x18\x05"), 5U);
  EXPECT_EQ(hits_of(std::string("\x18\x00", 2)), std::nullopt);
  EXPECT_EQ(hits_of(std::string("\x18\x00\x18\x03", 4)), 3U);
  for (const auto& [last, cost] : {std::pair(std::string("\x08\x00", 2), 0U), {"\x08\x05", 5U}, {"", 90U}})
    EXPECT_EQ(read_rls_call(call_with_cost({uint64_value(90), last}))->descriptors[0].cost, cost);
}

TEST(RlsCall, FieldsThatWeirDoesNotKnowAreSkipped) {
  std::string text;
  pbf_writer call(text);
  call.add_string(900, "unknown");
  call.add_fixed64(901, 1);
  {
    pbf_writer descriptor(call, 2);
    // A limit that Envoy states for the descriptor. weir skips it, because the operator's rules decide.
    pbf_writer(descriptor, 2).add_uint32(1, 5);
    add_entry(descriptor, "path", "/login");
    descriptor.add_fixed32(77, 1);
  }
  call.add_string(1, "edge");
  const auto read = read_rls_call(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->descriptors[0].entries.size(), 1U);
}

TEST(RlsCall, ErrorsSayWhatTheMessageLacks) {
  EXPECT_EQ(fault_of(""), "the call has no domain");
  std::string text;
  pbf_writer(text).add_string(1, "edge");
  EXPECT_EQ(fault_of(text), "the call has no descriptors");
  auto empty = text;
  {
    pbf_writer call(empty);
    pbf_writer descriptor(call, 2);
    descriptor.add_fixed32(77, 1);
  }
  EXPECT_EQ(fault_of(empty), "a descriptor has no entries");
  auto keyless = text;
  {
    pbf_writer call(keyless);
    pbf_writer descriptor(call, 2);
    add_entry(descriptor, "", "x");
  }
  EXPECT_EQ(fault_of(keyless), "an entry of a descriptor has no key");
}

TEST(RlsCall, CostsBeyondTheBoundsAreErrors) {
  EXPECT_EQ(fault_of(simple_call(1U << 31U)), "");
  EXPECT_NE(fault_of(simple_call((1U << 31U) + 1)), "");
  for (const std::uint64_t hits : {(std::uint64_t{1} << 31U) + 1, ~std::uint64_t{0}})
    EXPECT_NE(fault_of(call_with_cost({uint64_value(hits)})), "") << hits;
}

TEST(RlsCall, NegativeHitsAreErrors) {
  const auto call_with = [](std::string_view flag) {
    std::string text;
    pbf_writer call(text);
    call.add_string(1, "edge");
    std::string descriptor;
    pbf_writer writer(descriptor);
    add_entry(writer, "a", "b");
    call.add_message(2, descriptor + std::string(flag));
    return text;
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(fault_of(call_with("\x20\x00"sv)), "");
  EXPECT_EQ(fault_of(call_with("\x20\x01"sv)), "weir does not take negative hits back");
  EXPECT_EQ(fault_of(call_with("\x20\x80\x01"sv)), "weir does not take negative hits back");
  EXPECT_EQ(fault_of(call_with("\x20"sv)), "the message is no valid RateLimitRequest")
      << "the message ends before the flag";
}

TEST(RlsCall, HasAtMostThirtyTwoDescriptors) {
  std::string text;
  pbf_writer call(text);
  call.add_string(1, "edge");
  const auto add = [&] {
    pbf_writer descriptor(call, 2);
    add_entry(descriptor, "a", "b");
  };
  for (std::size_t i = 0; i < kMostDescriptors; ++i) add();
  EXPECT_EQ(fault_of(text), "");
  add();
  EXPECT_EQ(fault_of(text), "the call has more than 32 descriptors");
}

// A message that ends between two fields is valid, but may lack a field.
TEST(RlsCall, MessageThatEndsWithinAFieldIsRejected) {
  constexpr std::size_t kDomain = 6;  // the size of the field "domain" in simple_call()
  const auto text = simple_call(7);
  const auto without_hits = simple_call().size();
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_EQ(fault_of(text.substr(0, size)), size == 0         ? "the call has no domain"
                                              : size == kDomain ? "the call has no descriptors"
                                              : size == without_hits
                                                  ? ""
                                                  : "the message is no valid RateLimitRequest")
        << size;
}

TEST(RlsAnswer, StatesTheLimitOfEachDescriptor) {
  const RlsStatus statuses[] = {
      {.over_limit = true,
       .limit =
           RlsLimit{.rule = "logins", .units = 5, .period = 60s, .remaining = 0, .reset_after = 1'500ms}},
      {}};
  std::string text;
  append_rls_answer(text, {.over_limit = true, .statuses = statuses});
  EXPECT_EQ(number_in(text, 1), 2U);
  const auto written = texts_in(text, 2);
  ASSERT_EQ(written.size(), 2U);
  EXPECT_EQ(number_in(written[0], 1), 2U);
  const auto limit = texts_in(written[0], 2).at(0);
  EXPECT_EQ(number_in(limit, 1), 5U);
  EXPECT_EQ(number_in(limit, 2), 2U);
  EXPECT_EQ(texts_in(limit, 3).at(0), "logins");
  const auto reset = texts_in(written[0], 4).at(0);
  EXPECT_EQ(number_in(reset, 1), 1U);
  EXPECT_EQ(number_in(reset, 2), 500'000'000U);
  EXPECT_EQ(number_in(written[1], 1), 1U);
  EXPECT_TRUE(texts_in(written[1], 2).empty());
}

TEST(RlsAnswer, UnitIsUnknownIfEnvoyHasNoUnitForThePeriod) {
  const RlsStatus statuses[] = {{.limit = RlsLimit{.rule = "r", .units = 5, .period = 90s}}};
  std::string text;
  append_rls_answer(text, {.statuses = statuses});
  EXPECT_EQ(number_in(texts_in(texts_in(text, 2).at(0), 2).at(0), 2), 0U);
}

TEST(RlsAnswer, NumbersBeyond32BitsAreWrittenAsTheLargest32BitNumber) {
  const RlsStatus statuses[] = {
      {.limit = RlsLimit{
           .rule = "r", .units = std::uint64_t{1} << 40U, .period = 1s, .remaining = ~std::uint64_t{0}}}};
  std::string text;
  append_rls_answer(text, {.statuses = statuses});
  const auto status = texts_in(text, 2).at(0);
  EXPECT_EQ(number_in(texts_in(status, 2).at(0), 1), 0xffffffffU);
  EXPECT_EQ(number_in(status, 3), 0xffffffffU);
}

TEST(RlsAnswer, HeaderLinesBecomeHeadersForTheClient) {
  std::string text;
  append_rls_answer(
      text, {.over_limit = true, .fields = "Retry-After: 3\r\nX-RateLimit-Limit: 5\r\n", .body = "{}"});
  const auto headers = texts_in(text, 3);
  ASSERT_EQ(headers.size(), 2U);
  EXPECT_EQ(texts_in(headers[0], 1).at(0), "Retry-After");
  EXPECT_EQ(texts_in(headers[0], 2).at(0), "3");
  EXPECT_EQ(texts_in(headers[1], 2).at(0), "5");
  EXPECT_EQ(texts_in(text, 5).at(0), "{}");
}

}  // namespace
}  // namespace weir::ask
