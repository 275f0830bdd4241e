#include "weir/policy/redaction.hpp"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

std::string logged(std::string_view target) {
  ClientSettings settings;
  settings.api_key = {Source::Kind::Query, "api_key"};
  settings.user = {Source::Kind::Query, "u"};
  settings.device = {Source::Kind::Header, "x"};
  Redaction redaction(settings);
  redaction.hide({*parse_key_part("query:tenant|query:t t"), *parse_key_part("header:q")});
  std::string scratch;
  return std::string(redaction.redacted(target, scratch));
}

TEST(Redaction, HidesValuesThatIdentifyTheClient) {
  EXPECT_EQ(logged("/x?api_key=SECRET&y=1"), "/x?api_key=***&y=1");
  EXPECT_EQ(logged("/x?y=1&u=jo&api_key=SECRET"), "/x?y=1&u=***&api_key=***");
  EXPECT_EQ(logged("/x?api_key=A&api_key=B"), "/x?api_key=***&api_key=***");
  EXPECT_EQ(logged("/x?api_key=a=b"), "/x?api_key=***");
}

TEST(Redaction, HidesValuesInEverySpellingOfTheName) {
  EXPECT_EQ(logged("/x?api%5Fkey=SECRET"), "/x?api%5Fkey=***");
  EXPECT_EQ(logged("/x?%61pi_key=SECRET&z"), "/x?%61pi_key=***&z");
}

TEST(Redaction, ValuesThatAreNotSecretAreLoggedUnchanged) {
  for (const auto* target :
       {"/", "*", "/x?", "/x?&&", "/x?api_key", "/x?API_KEY=a", "/x?x=1", "/api_key=1", "/x?q=api_key"})
    EXPECT_EQ(logged(target), target);
}

TEST(Redaction, HidesQueryValuesThatAreKeysOfRules) {
  EXPECT_EQ(logged("/x?tenant=acme&y=1"), "/x?tenant=***&y=1");
  EXPECT_EQ(logged("/x?t+t=acme&t%20t=b"), "/x?t+t=***&t%20t=***");
}

TEST(Redaction, AlwaysHidesAccessTokens) {
  std::string scratch;
  EXPECT_EQ(Redaction(ClientSettings{}).redacted("/x?access_token=SECRET&a=1", scratch),
            "/x?access_token=***&a=1");
}

TEST(Redaction, HidesCredentialsInDescriptorsOfQuestions) {
  ClientSettings client;
  client.api_key = {Source::Kind::Query, "key"};
  const Redaction redaction(client);
  for (const auto* name : {"access_token", "authorization", "key"})
    EXPECT_TRUE(redaction.hides_descriptor(name)) << name;
  EXPECT_FALSE(redaction.hides_descriptor("plan"));
}

TEST(Redaction, NoValueIsHiddenIfNothingReadsTheQuery) {
  std::string scratch;
  EXPECT_EQ(Redaction(ClientSettings{}).redacted("/x?api_key=a", scratch), "/x?api_key=a");
  EXPECT_EQ(Redaction().redacted("/x?access_token=a", scratch), "/x?access_token=a");
}

TEST(Redaction, TellsWhetherALoggedQueryHidesTheValueOfAParameter) {
  EXPECT_TRUE(hides_value("a=1&%61pi_key=***", "api_key"));
  EXPECT_FALSE(hides_value("a=***&api_key=1&b=api_key", "api_key"));
  EXPECT_FALSE(hides_value("api_key", "api_key"));
}

}  // namespace
}  // namespace weir::policy
