#include "weir/net/challenges.hpp"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

TEST(Challenges, OnlyARequestForAPendingTokenIsAnswered) {
  Challenges challenges;
  EXPECT_FALSE(challenges.are_pending());
  challenges.set({.texts = {{"token", "token.thumb"}}});
  EXPECT_TRUE(challenges.are_pending());
  EXPECT_EQ(challenges.answer_to("/.well-known/acme-challenge/token"), "token.thumb");
  for (const char* other : {"/.well-known/acme-challenge/", "/.well-known/acme-challenge/token/",
                            "/.well-known/acme-challenge/tok", "/token", "token", ""})
    EXPECT_EQ(challenges.answer_to(other), std::nullopt) << other;
  EXPECT_EQ(challenges.context_for("a.example"), nullptr);
  challenges.set({});
  EXPECT_FALSE(challenges.are_pending());
  EXPECT_EQ(challenges.answer_to("/.well-known/acme-challenge/token"), std::nullopt);
}

TEST(Challenges, TlsContextIsFoundByTheNameThatItProves) {
  Challenges challenges;
  const Challenges::Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  challenges.set({.contexts = {{"a.example", context}}});
  EXPECT_TRUE(challenges.are_pending());
  EXPECT_EQ(challenges.context_for("a.example"), context);
  EXPECT_EQ(challenges.context_for("b.example"), nullptr);
  EXPECT_EQ(challenges.context_for(""), nullptr);
}

}  // namespace
}  // namespace weir::net
