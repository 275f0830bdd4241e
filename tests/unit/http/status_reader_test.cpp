#include "weir/http/status_reader.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using State = StatusReader::State;

constexpr std::string_view kHints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
constexpr std::string_view kFine = "HTTP/1.1 204 No Content\r\nServer: a\r\n\r\n";

TEST(StatusReader, ReadsTheHeadOfAResponse) {
  StatusReader reader;
  ASSERT_EQ(reader.feed(kFine), State::Known);
  EXPECT_EQ(reader.status(), 204);
}

// The interim heads and the final head may arrive in one piece.
TEST(StatusReader, SkipsInterimHeads) {
  StatusReader reader;
  ASSERT_EQ(reader.feed(std::string(kHints) + std::string(kHints) + std::string(kFine)), State::Known);
  EXPECT_EQ(reader.status(), 204);
}

TEST(StatusReader, ReadsTheSameStatusHoweverTheHeadIsDivided) {
  const std::string answer = std::string(kHints) + std::string(kFine);
  for (std::size_t cut = 1; cut < answer.size(); ++cut) {
    StatusReader reader;
    ASSERT_EQ(reader.feed(std::string_view(answer).substr(0, cut)), State::Wanting) << cut;
    ASSERT_EQ(reader.feed(std::string_view(answer).substr(cut)), State::Known) << cut;
    EXPECT_EQ(reader.status(), 204);
  }
}

// A health check must accept the same responses as weir accepts for requests that it forwards (RFC 9112
// §2.2).
TEST(StatusReader, AcceptsLinesThatEndInLineFeed) {
  const std::string answer = "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.0 200 OK\nServer: a\n\n";
  for (std::size_t cut = 1; cut < answer.size(); ++cut) {
    StatusReader reader;
    ASSERT_EQ(reader.feed(std::string_view(answer).substr(0, cut)), State::Wanting) << cut;
    ASSERT_EQ(reader.feed(std::string_view(answer).substr(cut)), State::Known) << cut;
    EXPECT_EQ(reader.status(), 200);
  }
}

TEST(StatusReader, RejectsInvalidHeads) {
  StatusReader reader;
  EXPECT_EQ(reader.feed("SSH-2.0-OpenSSH_9.2\r\n\r\n"), State::Faulty);
  StatusReader later;
  EXPECT_EQ(later.feed(std::string(kHints) + "and\r\n\r\n"), State::Faulty);
}

TEST(StatusReader, RejectsInvalidHeadsBeforeTheyEnd) {
  StatusReader reader;
  EXPECT_EQ(reader.feed("HTTP/1.1 2OO OK\n"), State::Faulty);
}

TEST(StatusReader, RejectsInterimAndFinalHeadsThatAreTooLargeTogether) {
  for (const std::string_view piece :
       {kHints, std::string_view("HTTP/1.1 200 OK a header without an end ")}) {
    StatusReader reader;
    std::size_t fed = 0;
    auto state = State::Wanting;
    while (state == State::Wanting && fed < 2 * StatusReader::kMost) {
      state = reader.feed(piece);
      fed += piece.size();
    }
    EXPECT_EQ(state, State::Faulty);
    EXPECT_GE(fed, StatusReader::kMost);
    EXPECT_LT(fed, StatusReader::kMost + piece.size());
  }
}

}  // namespace
}  // namespace weir::http
