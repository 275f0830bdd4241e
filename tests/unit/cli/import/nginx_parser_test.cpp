#include "cli/import/syntax/nginx_parser.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cli::nginx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Directives parsed(const std::string& text) {
  auto result = parse_nginx(text, "nginx.conf");
  EXPECT_TRUE(result.has_value()) << result.error().message;
  return result ? std::move(*result) : Directives{};
}

std::string error_of(const std::string& text) {
  const auto result = parse_nginx(text, "nginx.conf");
  return result ? "none" : result.error().message;
}

TEST(NginxParser, ReadsDirectivesAndBlocksWithTheirLineNumbers) {
  const auto all = parsed("a 1  2;\n# b 3;\nserver {\n  listen 80;\n}\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0].arguments, ElementsAre("1", "2"));
  EXPECT_FALSE(all[0].has_block);
  EXPECT_EQ(all[1].position.text(), "nginx.conf:3");
  ASSERT_EQ(all[1].block.size(), 1u);
  EXPECT_EQ(all[1].block[0].name, "listen");
  EXPECT_EQ(all[1].block[0].position.line, 4u);
}

TEST(NginxParser, ReadsQuotesAndEscapesLikeNginx) {
  const auto all = parsed(R"(a "x y" 'it "is"' "a\"b\n" c\ d \.php$ "" "\d";)");
  EXPECT_THAT(all[0].arguments, ElementsAre("x y", "it \"is\"", "a\"b\n", "c\\ d", "\\.php$", "", "\\d"));
}

TEST(NginxParser, HashSignOrVariableInsideAWordIsPartOfTheWord) {
  const auto all = parsed("a b#c ${x}y $z#;\nq 1;");
  EXPECT_THAT(all[0].arguments, ElementsAre("b#c", "${x}y", "$z#"));
  EXPECT_EQ(all.size(), 2u);
}

TEST(NginxParser, SkipsLuaBlocks) {
  const auto all = parsed("content_by_lua_block { if a { } ; }\nb 1;");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[0].block.empty());
  EXPECT_EQ(all[1].name, "b");
}

TEST(NginxParser, LuaBlockDoesNotEndAtABraceInALuaStringOrComment) {
  for (const std::string lua :
       {R"(s = "}"; t = '}\'}'; u = "\"}")", "-- }\n", "--[[ }\n } ]] x()", "s = [[ } ]]",
        "s = [==[ ]] } ]=] ]==]", "-- don't {\n", "a[b[1]] = {}", "a = b - -1 -- {{{\n", "--[=[ }\n]=]"}) {
    const auto all = parsed("x_by_lua_block { " + lua + " }\nb 1;");
    ASSERT_EQ(all.size(), 2u) << lua;
    EXPECT_EQ(all[1].name, "b") << lua;
  }
  EXPECT_EQ(parsed("x_by_lua_block { --[[\n\n]] }\nb 1;")[1].position.line, 4u);
  for (const std::string lua : {"\"}", "'\\", "[[ }", "--", "[=", "--[==[ ]=]"})
    EXPECT_THAT(error_of("x_by_lua_block { " + lua), HasSubstr("has no \"}\"")) << lua;
}

TEST(NginxParser, ErrorNamesTheLineOfASyntaxFault) {
  EXPECT_EQ(error_of("a;\nb"), "nginx.conf:2: \"b\" ends without \";\"");
  EXPECT_EQ(error_of("a;\n}"), "nginx.conf:2: found \"}\"; expected a directive");
  EXPECT_EQ(error_of("a {\n b;\n"), "nginx.conf:3: a block has no \"}\"");
  EXPECT_EQ(error_of("a \"b\n;"), "nginx.conf:2: a quoted text has no end");
  EXPECT_EQ(error_of("a \"b\"c;"), "nginx.conf:1: expected a blank, \";\" or \"{\" behind a quoted text");
  EXPECT_EQ(error_of("x_by_lua_block {"), "nginx.conf:1: the block of x_by_lua_block has no \"}\"");
}

TEST(NginxParser, RejectsBlocksThatAreNestedTooDeeply) {
  std::string text;
  for (std::size_t i = 0; i < kMostDepth - 1; ++i) text += "a {";
  EXPECT_THAT(error_of(text + std::string(kMostDepth - 1, '}')), "none");
  EXPECT_THAT(error_of(text + "a {"), HasSubstr("blocks are more than 64 deep"));
}

TEST(NginxParser, RejectsAFileWithTooManyDirectives) {
  std::string text;
  for (std::size_t i = 0; i < kMostDirectives; ++i) text += "a;";
  EXPECT_EQ(error_of(text), "none");
  EXPECT_THAT(error_of(text + "a;"), HasSubstr("more than 200000 directives"));
}

}  // namespace
}  // namespace weir::cli::nginx
