// Tests how the old process of an upgrade reports its concurrency permits to the new process.
#include "weir/upgrade/permit_changes.hpp"

#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::upgrade {
namespace {

using limit::Charge;
using limit::Limiter;

TEST(PermitChangeLines, AreUnchangedAfterWritingAndReading) {
  const PermitChange line{{.lo = 1, .hi = std::numeric_limits<std::uint64_t>::max()}, -3, "a rule of words"};
  const std::string text = text_of(line);
  EXPECT_EQ(text, "18446744073709551615 1 -3 a rule of words");
  EXPECT_EQ(permit_change_of(text), line);
}

TEST(PermitChangeLines, InvalidLinesAreRejected) {
  for (const char* text : {"", "1", "1 2", "1 2 3", "1 2 x rule", "1 2 3x rule", "-1 2 3 rule", "1  3 rule",
                           "1 2 9223372036854775808 rule"})
    EXPECT_FALSE(permit_change_of(text)) << text;
}

TEST(PermitChangeLines, ManyLinesAreDividedIntoMessagesOfBoundedSize) {
  EXPECT_TRUE(in_messages({}).empty());
  const std::string line(1000, 'x');
  const auto messages = in_messages(std::vector(100, line));
  std::size_t lines = 0;
  for (const auto& message : messages) {
    EXPECT_LE(message.size() * (line.size() + 1), std::size_t{32} << 10);
    EXPECT_FALSE(message.empty());
    lines += message.size();
  }
  EXPECT_EQ(lines, 100u);
  EXPECT_EQ(messages.size(), 4u);
}

class PermitChangesTest : public testing::Test {
 protected:
  void charge(std::uint64_t key) {
    const Charge one = line(key);
    limit::Outcome outcome;
    ASSERT_TRUE(table_.charge({&one, 1}, kNow, {&outcome, 1}));
  }
  Charge line(std::uint64_t key) const { return {.key = {key, key}, .limiter = &ten_}; }
  void release(std::uint64_t key) { table_.release(line(key), kNow, {}); }
  void turn() {
    context_.restart();
    context_.poll();
  }

  static constexpr base::TimePoint kNow{base::Duration{1'700'000'000'000'000}};
  const Limiter ten_ = limit::Concurrency::make(10).value();
  const std::vector<limit::SavedRule> rules_{{.name = "some", .variants = {}, .limiters = {&ten_}}};
  limit::KeyTable table_{100};
  net::asio::io_context context_;
  PermitChanges changes_{context_.get_executor(), table_};
  std::vector<std::string> told_;
};

TEST_F(PermitChangesTest, ChangesAreStoredUntilTheMainThreadSendsThem) {
  charge(1);
  EXPECT_EQ(changes_.begin(rules_), std::vector<std::string>{"1 1 1 some"});
  std::thread([&] { release(1); }).join();
  turn();
  changes_.follow([&](const auto& lines) { told_.insert(told_.end(), lines.begin(), lines.end()); });
  EXPECT_EQ(told_, std::vector<std::string>{"1 1 -1 some"});
  std::thread([&] { charge(2); }).join();
  EXPECT_EQ(told_.size(), 1u) << "only the main thread sends changes";
  turn();
  release(2);
  turn();
  EXPECT_EQ(told_, (std::vector<std::string>{"1 1 -1 some", "2 2 1 some", "2 2 -1 some"}));
}

TEST_F(PermitChangesTest, NothingIsSentAfterAFailedUpgrade) {
  charge(1);
  (void)changes_.begin(rules_);
  release(1);
  changes_.stop();
  charge(2);
  EXPECT_EQ(changes_.begin(rules_), std::vector<std::string>{"2 2 1 some"});
  changes_.follow([&](const auto& lines) { told_.insert(told_.end(), lines.begin(), lines.end()); });
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace weir::upgrade
