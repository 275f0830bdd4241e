#include "weir/ask/grpc_framing.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::ask {
namespace {

using namespace std::string_literals;
using State = GrpcMessage::State;

TEST(GrpcFraming, MessageIsWholeOnceAllItsOctetsHaveArrived) {
  std::string octets = "....." + std::string(300, 'x');
  write_grpc_framing(octets);
  const auto framed = octets + "rest";
  for (std::size_t size = 0; size < octets.size(); ++size)
    EXPECT_EQ(first_grpc_message(framed.substr(0, size), 300).state, State::Partial) << size;
  const auto message = first_grpc_message(framed, 300);
  EXPECT_EQ(message.state, State::Whole);
  EXPECT_EQ(message.text, std::string(300, 'x'));
  EXPECT_EQ(message.consumed, octets.size());
}

TEST(GrpcFraming, MessageAboveTheBoundIsTooLongBeforeItArrives) {
  EXPECT_EQ(first_grpc_message("\0\0\0\x01\x2d"s, 300).state, State::TooLong);
  EXPECT_EQ(first_grpc_message("\0\xff\xff\xff\xff"s, 300).state, State::TooLong);
}

TEST(GrpcFraming, CompressedMessageIsRecognisedByItsFlag) {
  EXPECT_EQ(first_grpc_message("\x01"s, 300).state, State::Compressed);
}

TEST(GrpcFraming, EmptyMessageIsWhole) {
  const auto octets = "\0\0\0\0\0"s;
  const auto message = first_grpc_message(octets, 0);
  EXPECT_EQ(message.state, State::Whole);
  EXPECT_EQ(message.consumed, 5U);
}

}  // namespace
}  // namespace weir::ask
