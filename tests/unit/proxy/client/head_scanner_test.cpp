// The scanner finds the end of a request's head in the received octets, and rejects octets that cannot become
// a head.
#include "proxy/client/head_scanner.hpp"

#include <algorithm>
#include <string_view>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

constexpr std::size_t kMost = 64;  // the largest allowed head in octets

struct Scan {
  BlockPool blocks{4096};
  Inbox inbox{blocks};
  HeadScanner scanner;

  HeadScanner::Found after(std::string_view more) {
    std::copy(more.begin(), more.end(), inbox.space());
    inbox.received(more.size());
    return scanner.scan(inbox, kMost);
  }
};

TEST(HeadScanner, FindsAHeadThatArrivesInPieces) {
  Scan scan;
  EXPECT_EQ(scan.after("GET / HTTP/1.1\r\nHo").size, 0U);
  EXPECT_EQ(scan.after("st: a\r\n\r").size, 0U);
  const auto found = scan.after("\nGET");
  EXPECT_EQ(found.size, 27U);
  EXPECT_FALSE(found.fault);
}

TEST(HeadScanner, SkipsEmptyLinesBeforeAHead) {
  Scan scan;
  EXPECT_FALSE(scan.after("\r\n\r").fault);
  EXPECT_EQ(scan.after("\nGET / HTTP/1.1\r\n\r\n").size, 18U);
  EXPECT_EQ(scan.inbox.unread().substr(0, 3), "GET");
}

TEST(HeadScanner, SkipsAtMostEightEmptyLines) {
  Scan scan;
  const auto found = scan.after("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  http::RequestHead head;
  EXPECT_TRUE(http::parse_request_head(scan.inbox.unread().substr(0, found.size), head));
}

TEST(HeadScanner, RefusesAHeadThatIsTooLarge) {
  Scan scan;
  const auto found = scan.after("GET / HTTP/1.1\r\nX: 0123456789012345678901234567890123456789012345678901");
  ASSERT_TRUE(found.fault);
  EXPECT_EQ(found.fault->status, 431U);
}

TEST(HeadScanner, RefusesATargetThatIsTooLong) {
  Scan scan;
  const auto found =
      scan.after("GET /0123456789012345678901234567890123456789012345678901234567890123456789");
  ASSERT_TRUE(found.fault);
  EXPECT_EQ(found.fault->status, 414U);
}

}  // namespace
}  // namespace weir::proxy
