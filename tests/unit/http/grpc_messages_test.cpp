#include "weir/http/grpc_messages.hpp"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

std::string message(std::size_t size, char flag = '\0') {
  std::string text{flag};
  for (const unsigned shift : {24U, 16U, 8U, 0U}) text += static_cast<char>(size >> shift & 255U);
  return text + std::string(size, '\xff');
}

// Returns the positions at which messages begin, if the octets arrive in pieces that end at `ends`.
std::vector<std::size_t> beginnings(std::string_view octets, const std::vector<std::size_t>& ends) {
  GrpcMessageScanner scanner;
  std::vector<std::size_t> found;
  std::size_t at = 0;
  for (const auto end : ends)
    while (at < end) {
      if (scanner.at_boundary()) found.push_back(at);
      const auto taken = scanner.take(octets.substr(at, end - at));
      EXPECT_GT(taken, 0U);
      at += taken;
    }
  return found;
}

TEST(GrpcMessages, EachMessageBeginsAfterTheContentOfThePreviousMessage) {
  const auto octets = message(3) + message(0) + message(70'000, '\1') + message(1);
  EXPECT_EQ(beginnings(octets, {octets.size()}), (std::vector<std::size_t>{0, 8, 13, 70'018}));
}

TEST(GrpcMessages, MessagesAreFoundHoweverTheOctetsAreDivided) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string octets;
    std::vector<std::size_t> expected, ends;
    for (auto count = random() % 20; count != 0; --count) {
      expected.push_back(octets.size());
      octets += message(random() % 300, static_cast<char>(random() % 2));
    }
    for (std::size_t end = 0; end < octets.size(); ends.push_back(end))
      end = std::min<std::size_t>(octets.size(), end + 1 + random() % 9);
    EXPECT_EQ(beginnings(octets, ends), expected);
  }
}

TEST(GrpcMessages, MessageOfNearlyFourGibibytesEndsAtItsLastOctet) {
  GrpcMessageScanner scanner;
  EXPECT_EQ(scanner.take(std::string_view("\0\xff\xff\xff\xff", 5)), 5U);
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < 4095; ++i) ASSERT_EQ(scanner.take(block), block.size());
  EXPECT_FALSE(scanner.at_boundary());
  EXPECT_EQ(scanner.take(block), block.size() - 1);
  EXPECT_TRUE(scanner.at_boundary());
}

TEST(GrpcMessages, ScannerIsNotAtAMessageBoundaryInsideALengthPrefix) {
  GrpcMessageScanner scanner;
  EXPECT_TRUE(scanner.at_boundary());
  EXPECT_EQ(scanner.take({"\0\0\0\0", 4}), 4U);
  EXPECT_FALSE(scanner.at_boundary());
  EXPECT_EQ(scanner.take({"\0", 1}), 1U);
  EXPECT_TRUE(scanner.at_boundary()) << "the message is empty";
  EXPECT_EQ(scanner.take({}), 0U);
}

}  // namespace
}  // namespace weir::http
