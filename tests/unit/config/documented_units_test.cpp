// The table of units in docs/configuration.md must contain exactly the time units that weir accepts, with
// their lengths.
#include "config/schema/schema_patterns.hpp"
#include "unit/config/document.hpp"

#include "weir/base/units.hpp"
#include "weir/limit/rate.hpp"

#include <map>
#include <regex>
#include <set>

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using namespace std::chrono_literals;

// Returns the texts in backticks, without the backticks and quotation marks.
std::vector<std::string> codes(const std::string& cell) {
  static const std::regex kCode("`\"?([^`\"]+)\"?`");
  std::vector<std::string> found;
  for (std::sregex_iterator at(cell.begin(), cell.end(), kCode), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

DocumentTable units() {
  for (const auto& section : document("configuration.md"))
    for (const auto& table : section.tables)
      if (table.header.front() == "unit") return table;
  return {};
}

TEST(DocumentedUnits, ListsExactlyTheUnitsThatWeirAccepts) {
  const std::map<std::string, base::Duration> kLengths = {{"microsecond", 1us}, {"millisecond", 1ms},
                                                          {"second", 1s},       {"minute", 1min},
                                                          {"hour", 1h},         {"day, of 24 hours", 24h}};
  std::set<std::string> documented;
  const auto table = units();
  for (const auto& row : table.rows) {
    const auto length = kLengths.find(row.front());
    if (length == kLengths.end()) continue;  // calendar weeks and months have no fixed length
    for (const auto& unit : codes(table.cell(row, "written"))) {
      documented.insert(unit);
      const auto read = base::parse_duration("1" + unit);
      ASSERT_TRUE(read) << unit;
      EXPECT_EQ(*read, length->second) << unit;
      EXPECT_EQ(limit::parse_rate("1/" + unit).value().period, length->second) << unit;
    }
  }
  const std::regex duration("^" + std::string(pattern::kDuration) + "$");
  const std::string letters = "acdehimnorsuwy";  // all letters that occur in units
  std::set<std::string> taken;
  std::vector<std::string> words{""};
  for (std::size_t i = 0; i < words.size() && words[i].size() < 4; ++i)
    for (const char letter : letters) {
      words.push_back(words[i] + letter);
      if (std::regex_match("1" + words.back(), duration)) taken.insert(words.back());
    }
  EXPECT_EQ(documented, taken);
}

TEST(DocumentedUnits, WeirAcceptsTheExamples) {
  const auto table = units();
  ASSERT_EQ(table.rows.size(), 8u);
  for (const auto& row : table.rows)
    for (const auto& text : codes(table.cell(row, "for example"))) {
      if (text == "m" || text.ends_with("/week") || text.ends_with("/month") || text.find('=') != text.npos)
        continue;
      EXPECT_TRUE(text.find('/') == text.npos ? base::parse_duration(text).has_value()
                                              : limit::parse_rate(text).has_value())
          << text;
    }
  for (const char* none : {"1h30min", "1.5s", "10 s", "1S", "1Min"})
    EXPECT_FALSE(base::parse_duration(none)) << none;
}

}  // namespace
}  // namespace weir::config::test
