#include "weir/acme/messages.hpp"

#include <gtest/gtest.h>

namespace weir::acme {
namespace {

TEST(Directory, ParserReadsTheUrlsOfTheAuthority) {
  const auto directory = parse_directory(
      R"({"newNonce":"https://a/n","newAccount":"https://a/a","newOrder":"https://a/o","renewalInfo":"https://a/r","meta":{"externalAccountRequired":true},"x":[1]})");
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->new_nonce, "https://a/n");
  EXPECT_EQ(directory->new_account, "https://a/a");
  EXPECT_EQ(directory->new_order, "https://a/o");
  EXPECT_EQ(directory->renewal_info, "https://a/r");
  EXPECT_TRUE(directory->needs_external_account);
}

TEST(Directory, ErrorNamesTheMissingOrInvalidUrl) {
  EXPECT_EQ(parse_directory(R"({"newNonce":"https://a/n","newAccount":7})").error().message,
            "the authority's directory has no usable \"newAccount\"");
  EXPECT_EQ(parse_directory("<html>").error().message, "the authority's directory is no JSON object");
  EXPECT_EQ(parse_directory("[]").error().message, "the authority's directory is no JSON object");
}

TEST(Problem, TextOmitsTheTypePrefixAndControlCharacters) {
  const auto problem = parse_problem(R"({"type":"urn:ietf:params:acme:error:badNonce","detail":"a\nb"})");
  EXPECT_EQ(problem.type, "badNonce");
  EXPECT_EQ(in_words(problem), "a b (badNonce)");
  EXPECT_EQ(in_words(parse_problem("no JSON")), "no reason given");
  EXPECT_EQ(in_words({.type = "", .detail = std::string(900, 'x')}).size(), 500U);
}

TEST(Order, ParserReadsTheStatusAndTheUrlsOfAnOrder) {
  const auto order = parse_order(
      R"({"status":"processing","finalize":"https://a/f","authorizations":["https://a/1","https://a/2"]})");
  ASSERT_TRUE(order);
  EXPECT_EQ(order->status, Status::Processing);
  EXPECT_EQ(order->authorizations.size(), 2U);
  EXPECT_EQ(order->certificate, "");
  EXPECT_EQ(parse_order(R"({"status":"unheard","finalize":"f","authorizations":[]})")->status,
            Status::Invalid);
  EXPECT_FALSE(parse_order(R"({"status":"ready","finalize":"f","authorizations":[1]})"));
  EXPECT_FALSE(parse_order(R"({"status":"ready","authorizations":[]})"));
}

TEST(Authorization, ChallengeWhoseTokenIsNotSafeInAUrlIsIgnored) {
  const auto authorization = parse_authorization(
      R"({"status":"pending","identifier":{"type":"dns","value":"a.example"},"challenges":[
          {"type":"http-01","url":"https://a/c","token":"abc_-9"},
          {"type":"tls-alpn-01","url":"https://a/d","token":"../../etc/passwd"},
          {"type":"dns-01","url":"https://a/e","error":{"type":"urn:ietf:params:acme:error:dns","detail":"gone"}}, 7]})");
  ASSERT_TRUE(authorization);
  EXPECT_EQ(authorization->name, "a.example");
  ASSERT_EQ(authorization->challenges.size(), 1U);
  EXPECT_EQ(authorization->challenges.front().token, "abc_-9");
  EXPECT_EQ(in_words(authorization->error), "gone (dns)");
}

TEST(RenewalInfo, RejectsARenewalWindowThatDoesNotEndAfterItsBeginning) {
  const auto window = parse_renewal_info(
      R"({"suggestedWindow":{"start":"2026-01-03T04:00:00Z","end":"2026-01-03T05:00:00+00:00"}})");
  ASSERT_TRUE(window);
  EXPECT_EQ(window->end - window->start, std::chrono::hours(1));
  EXPECT_FALSE(parse_renewal_info(
      R"({"suggestedWindow":{"start":"2026-01-03T04:00:00Z","end":"2026-01-03T04:00:00Z"}})"));
  EXPECT_FALSE(parse_renewal_info(R"({"suggestedWindow":[]})"));
}

TEST(ParseTime, AcceptsTimesInTheFormatOfRfc3339) {
  const SysTime noon(std::chrono::sys_days(std::chrono::year(2026) / 2 / 28) + std::chrono::hours(12));
  EXPECT_EQ(parse_time("2026-02-28T12:00:00Z"), noon);
  EXPECT_EQ(parse_time("2026-02-28T12:00:00.123456Z"), noon);
  EXPECT_EQ(parse_time("2026-02-28T13:30:00+01:30"), noon);
  EXPECT_EQ(parse_time("2026-02-28T07:00:00-05:00"), noon);
  for (const char* wrong : {"", "2026-02-30T12:00:00Z", "2026-02-28T24:00:00Z", "2026-02-28T12:00:00",
                            "2026-02-28", "2026-02-28T12:00:00Z ", "2026-02-28T12:00:00+1:00", "tomorrow"})
    EXPECT_EQ(parse_time(wrong), std::nullopt) << wrong;
}

TEST(Token, TokenMustBeShortBase64Url) {
  EXPECT_TRUE(is_token("a-Z_9"));
  EXPECT_TRUE(is_token(std::string(128, 'a')));
  for (const auto& wrong : {std::string(), std::string("."), std::string("a/b"), std::string("a b"),
                            std::string("a="), std::string(129, 'a')})
    EXPECT_FALSE(is_token(wrong)) << wrong;
}

}  // namespace
}  // namespace weir::acme
