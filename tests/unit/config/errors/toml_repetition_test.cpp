// Tests messages about repeated keys, repeated table headers, and doubled characters such as "==".
#include "config/read/client/keys_file.hpp"
#include "unit/config/configuration.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Repetition {
  std::string text;
  std::string fault;  // the expected message, which begins with the number of the line
};

void expect_repetitions(const std::vector<Repetition>& cases) {
  for (const auto& [text, fault] : cases)
    EXPECT_THAT(mistakes_in(text), ElementsAre("weir.toml:" + fault)) << text;
}

TEST(TomlRepetition, ErrorNamesAKeyThatOccursTwice) {
  expect_repetitions(
      {{"[server]\nworkers = 1\nworkers = 2 # two\n",
        "3: found the key workers a second time; keep one of the two"},
       {"[[rule]]\nmatch = { path = \"/a\", method = \"GET\", path = \"/b\" }\n",
        "2: found the key path a second time in match; keep one of the two"},
       {"[[rule]]\nmatch = { not = { path = '/a', path = '/b' } }\n",
        "2: found the key path a second time in not; keep one of the two"},
       {"[[upstream]]\nservers = [\n  { address = \"a:1\", address = \"a:2\" },\n]\n",
        "3: found the key address a second time; keep one of the two"},
       {"[[rule]]\nmatch.path = \"/a\"\nmatch.path = \"/b\"\n",
        "3: found the key match.path a second time; keep one of the two"},
       {"[[rule]]\nmatch = { path = \"/a\" }\nmatch.method = \"GET\"\n",
        "3: found match.method, but a part of it has a value above; write all of it in one place"}});
}

TEST(TomlRepetition, ErrorNamesATableThatIsWrittenInTwoForms) {
  expect_repetitions(
      {{"[server]\n[[server]]\n",
        "2: found both [server] and [[server]]; keep one [server], with all of its keys below it"},
       {"server = 1\n[server]\n",
        "2: found the key server with a value, and the header [server]; keep one of the two"}});
}

TEST(TomlRepetition, ErrorShowsNoValueOfASecretKeyThatOccursTwice) {
  for (const auto* text :
       {"[client]\njwt = { secret = \"s3cret\", secret = \"s3cret\" }\n",
        "[client]\njwt = { secret = \"a\\\"=s3cret\", secret = \"s3cret\" }\n",
        "[admin]\ntoken = \"s3cret\"\ntoken = \"s3cret\"\n", "[admin]\ntoken = = \"s3cret\"\n",
        "[admin]\ntoken -= \"s3cret\"\n", "[admin]\ntoken \"= \"s3cret\"\n", "[admin]\ntoken == s3cret\n"})
    EXPECT_THAT(mistakes_in(text), ElementsAre(Not(HasSubstr("s3cret")))) << text;
  expect_repetitions({{"[admin]\ntoken = = \"s3cret\"\n", "2: found = = after token; write token = \"…\""}});
}

TEST(TomlRepetition, ErrorShowsADoubledEqualsSignAndTheCorrectLine) {
  for (const auto* sign : {"= =", "==", ":=", "+=", "=>", "= ==", ">=", "-=", "!="})
    expect_repetitions({{"[[rule]]\nburst " + std::string(sign) + " 5 # five\n",
                         "2: found " + std::string(sign) + " after burst; write burst = 5"},
                        {"[[rule]]\nlimit " + std::string(sign) + " 10/s\n",
                         "2: found " + std::string(sign) + " after limit; write limit = \"10/s\""}});
  expect_repetitions(
      {{"[[rule]]\nlimit == \"10/s\"\n", "2: found == after limit; write limit = \"10/s\""},
       {"[[rule]]\nkey == [\"ip\"]\n", "2: found == after key; write key = [\"ip\"]"},
       {"[[rule]]\nburst == many\n", "2: found == after burst; write burst = 0, or another whole number"},
       {"[[rule]]\nmatch = { method = \"GET\", path == \"/a\" }\n",
        "2: found == after path; write path = \"/a\""}});
}

TEST(TomlRepetition, ErrorShowsADoubledCommaOrBracketOrSignOrDot) {
  expect_repetitions(
      {{"[[rule]]\nkey = [\"ip\",, \"user\"]\n", "2: found two commas; write one"},
       {"[[rule]]\nkey = [, \"user\"]\n", "2: found a comma before the first value; remove it"},
       {"[[rule]]\nkey = [\"ip\"]]\n", "2: found a ] that closes nothing; remove it"},
       {"[[rule]]\nmatch = { path = \"/a\" }}\n", "2: found a } that closes nothing; remove it"},
       {"[[rule]]\nmatch = {{ path = \"/a\" }}\n", "2: found {{; write one { and one }"},
       {"[[rule]]\nkey = [[\"ip\"]\n",
        "2: found a value that the file does not close; write its closing bracket"},
       {"[[rule]]\nburst = --5\n", "2: found --5; write burst = 5"},
       {"[[rule]]\nburst = +-5\n", "2: found +-5; write burst = 5"},
       {"[[rule]]\nmatch..path = \"/a\"\n", "2: found a dot too many in match..path; write match.path"},
       {"[server]\n.workers = 1\n", "2: found a dot too many in .workers; write workers"},
       {"[server]\nworkers. = 1\n", "2: found a dot too many in workers.; write workers"},
       {"[[rule..match]]\n", "1: found a dot too many in [[rule..match]]; write [[rule.match]]"},
       {"[ [rule] ]\n", "1: found a header whose brackets do not match; write [[rule]]"}});
}

TEST(TomlRepetition, ErrorShowsADoubledQuote) {
  for (const auto* value : {"\"10/s\"\"", "\"\"10/s\""})
    expect_repetitions({{"[[rule]]\nlimit = " + std::string(value) + "\n",
                         "2: found a quote too many; write limit = \"10/s\""}});
  expect_repetitions({{"[[rule]]\nlimit = \"\"10/s\"\"\n",
                       "2: found two quotes on each side of the value; write limit = \"10/s\""},
                      {"[[rule]]\nkey = [\"\", \"ip]\n",
                       "2: found a quote that is not closed on its line; write key = [\"\",\"ip\"]"}});
}

TEST(TomlRepetition, ErrorShowsTheUnexpectedTextAfterAnUnquotedValue) {
  expect_repetitions({{"[[rule]]\nburst = 5 5\n", "2: found 5 after the value; write burst = 5"},
                      {"[[rule]]\nburst = 5 = 6\n", "2: found = 6 after the value; write burst = 5"},
                      {"[[rule]]\nburst = 5;\n", "2: found ; after the value; write burst = 5"},
                      {"[[rule]]\nburst = 5 queue = 3\n",
                       "2: found two keys on one line; write burst = 5, and the rest on the next line"},
                      {"[[rule]]\nburst = ,\n", "2: found no value; write one after burst ="}});
}

TEST(TomlRepetition, ErrorNamesARepeatedTomlKeyOfTheKeysFileOnlyIfTheSchemaHasIt) {
  const std::pair<std::string, std::string> cases[] = {
      {"[[key]]\nkey = \"s3cret\"\nkey = \"s3cret\"\n",
       "keys.toml:3: found the key key a second time; keep one of the two"},
      {"[[key]]\nkey = \"s3cret\"\ntier = \"a\"\ntier = \"b\"\n",
       "keys.toml:4: found the key tier a second time; keep one of the two"},
      {"key = [{ key = \"s3cret\", key = \"s3cret\" }]\n",
       "keys.toml:1: found the key key a second time in key; keep one of the two"},
      {"[[key]]\nkey = \"s3cret\"\n[key]\n",
       "keys.toml:3: found both [key] and [[key]]; write [[key]] each time"},
      {"[[key]]\ns3cret = 1\ns3cret = 2\n",
       "keys.toml:3: found a name a second time in one table (not shown, because the file contains API "
       "keys); "
       "keep one of the two"}};
  for (const auto& [text, fault] : cases) {
    ConfigErrors mistakes;
    (void)read_keys(text, "keys.toml", mistakes);
    EXPECT_THAT(mistakes.lines(), ElementsAre(fault));
  }
}

}  // namespace
}  // namespace weir::config::test
