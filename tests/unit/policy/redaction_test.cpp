#include "weir/policy/redaction.hpp"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

std::string logged(std::string_view target) {
  ClientSettings settings;
  settings.api_key = {Source::Kind::Query, "api_key"};
  settings.user = {Source::Kind::Query, "u"};
  settings.device = {Source::Kind::Header, "x"};
  std::string scratch;
  return std::string(redacted(settings, target, scratch));
}

TEST(Redaction, ValuesThatNameTheClientAreHidden) {
  EXPECT_EQ(logged("/x?api_key=SECRET&y=1"), "/x?api_key=***&y=1");
  EXPECT_EQ(logged("/x?y=1&u=jo&api_key=SECRET"), "/x?y=1&u=***&api_key=***");
  EXPECT_EQ(logged("/x?api_key=A&api_key=B"), "/x?api_key=***&api_key=***");
  EXPECT_EQ(logged("/x?api_key=a=b"), "/x?api_key=***");
}

TEST(Redaction, HoweverTheNameIsSpelt) {
  EXPECT_EQ(logged("/x?api%5Fkey=SECRET"), "/x?api%5Fkey=***");
  EXPECT_EQ(logged("/x?%61pi_key=SECRET&z"), "/x?%61pi_key=***&z");
}

TEST(Redaction, EverythingElseStaysAsItCame) {
  for (const auto* target :
       {"/", "*", "/x?", "/x?&&", "/x?api_key", "/x?API_KEY=a", "/x?x=1", "/api_key=1", "/x?q=api_key"})
    EXPECT_EQ(logged(target), target);
}

TEST(Redaction, NothingIsHiddenWhereNothingIsReadFromTheQuery) {
  std::string scratch;
  EXPECT_EQ(redacted(ClientSettings{}, "/x?api_key=SECRET", scratch), "/x?api_key=SECRET");
}

}  // namespace
}  // namespace weir::policy
