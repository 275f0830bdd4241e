// Tests which faults weir finds while a head is still incomplete.
#include "weir/http/head_parser.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

#define RAW(text) std::string_view(text, sizeof(text) - 1)

// None of the texts below ends in an empty line. So without the early check, weir would wait for the rest of
// the head.
TEST(FindEarlyFault, FindsAFaultBeforeTheHeadIsComplete) {
  for (const auto begun :
       {RAW("GET / HTTP/1.1\nHost: a\n\n"), RAW("GET /\r\n"), RAW("GET / HTTP/2.0\r\nHost"), RAW("\n"),
        RAW("\rG"), RAW("\x16\x03\x01\x02\x00\x01"), RAW(" GET"), RAW("GET / HTTP/1.1\r\nHost: a\n"),
        RAW("GET / HTTP/1.1\r\nHost: a\r\nX: 1\nY"), RAW("SSH-2.0-OpenSSH_9.2p1\r\n")}) {
    const auto fault = find_early_fault(begun);
    ASSERT_TRUE(fault) << begun;
    EXPECT_EQ(fault->status, 400u);
    bool found = false;  // true: a part of the text already has a fault
    for (std::size_t size = 1; size <= begun.size() && !found; ++size)
      found = find_early_fault(begun.substr(0, size), size - 1).has_value();
    EXPECT_TRUE(found) << begun;
  }
}

TEST(FindEarlyFault, FindsNoFaultInAnyPrefixOfAValidHead) {
  const std::string head = "POST /x?y HTTP/1.1\r\nHost: a\r\nX:\ty \r\nContent-Length: 3\r\n\r\n";
  for (std::size_t size = 0; size <= head.size(); ++size)
    for (std::size_t from = 0; from <= size; ++from)
      ASSERT_FALSE(find_early_fault(head.substr(0, size), from)) << size << " from " << from;
  EXPECT_FALSE(find_early_fault("\r")) << "half an empty line";
}

TEST(FindEarlyAnswerFault, FindsAFaultBeforeTheHeadIsComplete) {
  for (const auto begun : {RAW("SSH-2.0-OpenSSH_9.2"), RAW("220 smtp\r\n"), RAW("\x15\x03\x03"), RAW("<p>"),
                           RAW("\n"), RAW("HTTP/2"), RAW("HTTP/1.1 2OO OK\r\n"), RAW("HTTP/1.1 2OO OK\n")}) {
    const auto fault = find_early_answer_fault(begun);
    ASSERT_TRUE(fault) << begun;
    EXPECT_EQ(fault->status, 502u);
    bool found = false;  // true: a part of the text already has a fault
    for (std::size_t size = 1; size <= begun.size() && !found; ++size)
      found = find_early_answer_fault(begun.substr(0, size), size - 1).has_value();
    EXPECT_TRUE(found) << begun;
  }
}

TEST(FindEarlyAnswerFault, FindsNoFaultInAnyPrefixOfAValidHead) {
  for (const std::string head :
       {"HTTP/1.1 200\r\nContent-Length: 3\r\nX:\ty \r\n\r\n", "HTTP/1.1 200\nContent-Length: 3\nX:\ty \n\n"})
    for (std::size_t size = 0; size <= head.size(); ++size)
      for (std::size_t from = 0; from <= size; ++from)
        ASSERT_FALSE(find_early_answer_fault(head.substr(0, size), from)) << size << " from " << from;
}

}  // namespace
}  // namespace weir::http
