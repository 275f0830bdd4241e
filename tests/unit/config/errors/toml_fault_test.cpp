// Tests messages about lines that are not valid TOML. For common mistakes, weir must show its own message and
// not the parser's.
#include "config/errors/toml_fault.hpp"

#include "unit/config/configuration.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string fault_in(const std::string& text) {
  const auto mistakes = mistakes_in(text);
  return mistakes.size() == 1 ? mistakes.front() : std::to_string(mistakes.size()) + " mistakes";
}

struct FaultyText {
  std::string text;
  std::string fault;
};

void expect_faults(const std::vector<FaultyText>& cases) {
  for (const auto& [text, fault] : cases) EXPECT_EQ(fault_in(text), "weir.toml:1: " + fault) << text;
}

TEST(TomlFault, ErrorAboutAnUnclosedQuoteShowsTheCorrectLine) {
  expect_faults(
      {{"limit = \"10/s\nkey = 3\n", "found a quote that is not closed on its line; write limit = \"10/s\""},
       {"limit = '10/s\n", "found a quote that is not closed on its line; write limit = '10/s'"},
       {"limit = \"10/s", "found a quote that is not closed on its line; write limit = \"10/s\""},
       {"limit = \"10/s  # ten\n", "found a quote that is not closed on its line; write limit = \"10/s\""},
       {"key = [\"ip]\n", "found a quote that is not closed on its line; write key = [\"ip\"]"},
       {"match = { path = \"/a }\n",
        "found a quote that is not closed on its line; write match = { path = \"/a\" }"}});
}

TEST(TomlFault, ErrorAboutAnUnquotedStringShowsTheQuotedString) {
  expect_faults(
      {{"limit = 10/s\n", "found 10/s without quotes; write limit = \"10/s\""},
       {"limit = 10/second # so many\n", "found 10/second without quotes; write limit = \"10/second\""},
       {"limit = 10/s;\n", "found 10/s without quotes; write limit = \"10/s\""},
       {"drain = 30s\n", "found 30s without quotes; write drain = \"30s\""},
       {"max_head = 64KiB\n", "found 64KiB without quotes; write max_head = \"64KiB\""},
       {"soft = 10%\n", "found 10% without quotes; write soft = \"10%\""},
       {"name = api\n", "found api without quotes; write name = \"api\""},
       {"address = 127.0.0.1:8080\n",
        "found 127.0.0.1:8080 without quotes; write address = \"127.0.0.1:8080\""},
       {"address = [::1]:80\n", "found [::1]:80 without quotes; write address = \"[::1]:80\""},
       {"key = [ip]\n", "found ip without quotes; write \"ip\""},
       {"match = { path = /login }\n", "found /login without quotes; write path = \"/login\""},
       {"limit = \u201c10/s\u201d\n", "found quotes that are not straight; write limit = \"10/s\""}});
  EXPECT_EQ(fault_in("servers = [\n  \"a:1\",\n  10.0.0.1:80,\n]\n"),
            "weir.toml:3: found 10.0.0.1:80 without quotes; write \"10.0.0.1:80\"");
}

TEST(TomlFault, ErrorAboutYamlOrNginxSyntaxShowsTheCorrectToml) {
  expect_faults(
      {{"limit: \"10/s\"\n", "found no = after limit; write limit = \"10/s\""},
       {"limit 10/s;\n", "found no = after limit; write limit = \"10/s\""},
       {"burst 20\n", "found no = after burst; write burst = 20"},
       {"rule {\n", "found a block; write [[rule]], and its keys below it"},
       {"server {\n", "found a block; write [server], and its keys below it"},
       {"// note\n", "found //; a comment begins with #"},
       {"forwarded = yes\n", "found yes; write forwarded = true, or forwarded = \"yes\" for a text"},
       {"forwarded = False\n", "found False; write forwarded = false, or forwarded = \"False\" for a text"},
       {"limit = null\n", "found null; leave the key out instead"},
       {"burst = 05\n", "found a number that begins with 0; write burst = 5"},
       {"limit =\n", "found no value; write one after limit ="},
       {"limit = \"10/s\";\n", "found ; after the value; write limit = \"10/s\""},
       {"limit = \"10/s\",\n", "found , after the value; write limit = \"10/s\""},
       {"limit = \"10/s\" burst = 2\n",
        "found two keys on one line; write limit = \"10/s\", and the rest on the next line"},
       {"path = \"~\\d+\"\n",
        "found a backslash between double quotes, where it starts an escape; write '~\\d+', because single "
        "quotes have no escapes"},
       {"match = { path = \"/a\", }\n", "found a comma before }; write the table without it"},
       {"match = { path = \"/a\",\n",
        "found a table { … } that continues on the next line; write all of it on one line, or under a header "
        "such as [rule.match]"},
       {"servers = [\"a:1\" \"b:2\"]\n", "found no comma between two values; write one before \"b:2\"]"}});
}

TEST(TomlFault, ErrorAboutAKeyShowsItsForbiddenCharacter) {
  expect_faults({{"max head = \"1KiB\"\n", "found two words before =; write one key"},
                 {"max head = 1KiB\n", "found two words before =; write one key"},
                 {"key[ = \"a\"\n", "found [ in the key key[; write letters, digits, _ and -"},
                 {"dr\u00e4in = 5\n", "found \u00e4 in the key dr\u00e4in; write letters, digits, _ and -"},
                 {"bur>st = 5\n", "found > in the key bur>st; write letters, digits, _ and -"}});
}

TEST(TomlFault, ErrorAboutABrokenOrRepeatedTableHeaderGivesAdvice) {
  expect_faults({{"[[rule]\n", "found a header whose brackets do not match; write [[rule]]"},
                 {"[rule]]\n", "found a header whose brackets do not match; write [[rule]]"},
                 {"[server\n", "found a header whose brackets do not match; write [server]"}});
  EXPECT_EQ(fault_in("[rule]\na = 1\n[rule]\n"),
            "weir.toml:3: found [rule] a second time; write [[rule]] each time");
  EXPECT_EQ(fault_in("[[rule]]\na = 1\n[rule]\n"),
            "weir.toml:3: found both [rule] and [[rule]]; write [[rule]] each time");
  EXPECT_EQ(fault_in("[server]\na = 1\n[server]\n"),
            "weir.toml:3: found [server] a second time; keep one, with all of its keys below it");
  EXPECT_EQ(fault_in("a = 1\na = 2\n"), "weir.toml:2: found the key a a second time; keep one of the two");
  EXPECT_EQ(fault_in("key = [\"ip\"\nburst = 3\n"),
            "weir.toml:2: found a list above that is not closed; write ] before this line");
  EXPECT_EQ(fault_in("key = [\nname = \"a\"\n"),
            "weir.toml:2: found a list above that is not closed; write ] before this line");
}

TEST(TomlFault, ErrorAboutAListOrTableThatIsNotClosedDoesNotBlameTheNextHeader) {
  EXPECT_EQ(fault_in("key = [1, 2\n\n[[rule]]\n"),
            "weir.toml:3: found a list above that is not closed; write ] before this line");
  expect_faults(
      {{"match = { path = \"/a\"\n",
        "found a table { … } that continues on the next line; write all of it on one line, or under "
        "a header such as [rule.match]"},
       {"match = { priority = 1\n",
        "found a table { … } that continues on the next line; write all of it on one line, or under "
        "a header such as [rule.match]"}});
}

TEST(TomlFault, ErrorAboutAnInvisibleCharacterNamesIt) {
  expect_faults(
      {{"drain = \"a\x1b[31m\"\n", "found the control character U+001B; remove it"},
       {std::string("drain = \"a\0b\"\n", 14), "found the control character U+0000; remove it"},
       {"[server]\u00a0\n", "found the invisible character U+00A0; write a blank instead, or remove it"},
       {"drain\u00a0= \"1s\"\n", "found the invisible character U+00A0; write a blank instead, or remove it"},
       {"[server]\rworkers = 1\r", "found a carriage return within a line; save the file with line feeds"},
       {"name = \"a\u00a0b\" c\n", "found c after the value; write name = \"a\u00a0b\""}});
}

TEST(TomlFault, ErrorAboutAHeaderOrAnotherFormatShowsTheCorrectToml) {
  expect_faults(
      {{"[]\n", "found a header without a name; write such as [server]"},
       {"server]\n", "found a header without its first bracket; write [server]"},
       {"rule]]\n", "found a header without its first bracket; write [[rule]]"},
       {"[my server]\n", "found other signs than letters, digits, _ and - in the header [my server]"},
       {"[server] workers = 1\n",
        "found a header and a key on one line; write [server], and workers on the next line"},
       {"server { workers 4; }\n", "found a block; write [server], and its keys below it"},
       {"{\"server\": {}}\n", "found {, as JSON begins; write TOML: key = value, below a [header]"},
       {"{\n", "found {, as JSON begins; write TOML: key = value, below a [header]"}});
}

TEST(TomlFault, ErrorAboutAVeryLongLineIsShort) {
  for (const auto& text :
       {"drain = \"" + std::string(1'000'000, '9') + "\"\n", std::string(1'000'000, 'k') + " = 1\n",
        "drain = " + std::string(1'000'000, 'x') + "\n"}) {
    bool shortened = false;
    for (const auto& mistake : mistakes_in("[server]\n" + text)) {
      EXPECT_LT(mistake.size(), 5000U);
      shortened = shortened || mistake.find(" … ") != std::string::npos;
    }
    EXPECT_TRUE(shortened);
  }
}

// Truncates a valid line at every position. The message must be weir's own and must not show a secret.
TEST(TomlFault, ErrorAboutATruncatedLineIsInWeirsOwnWordsAndShowsNoSecret) {
  const std::string line = "limit = \"10/s\" # ten\n";
  for (std::size_t cut = 0; cut + 1 < line.size(); ++cut)
    for (const auto& mistake : mistakes_in(line.substr(0, cut) + "\n"))
      EXPECT_THAT(mistake, Not(HasSubstr("Error while"))) << cut;
  for (const std::string secret :
       {"token = \"s3cret\n", "secret = s3cret\n", "key_secret = 's3cret\n", "url = \"redis://:s3cret@a\n",
        "authorization = s3cret\n", "key = s3cret\n", "jwt = { secret = \"s3cret }\n"})
    EXPECT_THAT(fault_in(secret), Not(HasSubstr("s3cret"))) << secret;
  EXPECT_THAT(fault_in("algorithm = token_bucket\n"), HasSubstr("write algorithm = \"token_bucket\""));
}

TEST(TomlFault, DottedKeyOfMoreThanAThousandPartsIsAnError) {
  std::string key = "a";
  for (int i = 0; i < 20'000; ++i) key += ".a";
  for (const auto& line : {key + " = 1", "[" + key + "]", "x = { " + key + " = 1 }"})
    EXPECT_THAT(mistakes_in("\n" + line + "\n"),
                ElementsAre("weir.toml:2: not TOML: a key has more than a thousand parts"));
}

}  // namespace
}  // namespace weir::config::test
