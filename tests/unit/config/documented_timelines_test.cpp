// Replays every timeline in docs/limiters.md. A timeline is a table whose first column is `at`. It shows what
// the rule in the same section does over time. It has these columns:
//
// - at: the time, "12:00:30" or "12:00:00.250" on Monday 2026-03-02 UTC, or with another date before it
// - comes: the event, "5 requests", "1 request of 30" (its cost), "1 ends", "20 end after 50 ms"
// - answer: "admitted", "refused", "18 admitted, 2 refused"
// - left, retry after, leaves after, fresh after, limit: for the last request; empty cells are not checked
#include "unit/config/document.hpp"
#include "unit/policy/country_file.hpp"

#include "weir/base/units.hpp"
#include "weir/limit/key_table.hpp"

#include <array>
#include <map>
#include <optional>
#include <tuple>

#include <gmock/gmock.h>
#include <re2/re2.h>

namespace weir::config::test {
namespace {

using base::Duration;
using base::TimePoint;

// Parses a duration such as "6 h", "1 h 30 min" or "never".
Duration duration_of(const std::string& text) {
  if (text == "never") return base::kForever;
  static const std::map<std::string, std::int64_t> kMicros = {
      {"ms", 1'000}, {"s", 1'000'000}, {"min", 60'000'000}, {"h", 3'600'000'000}, {"days", 86'400'000'000}};
  std::istringstream words(text);
  Duration sum{0};
  std::string unit;
  for (std::int64_t count = 0; words >> count >> unit;) sum += Duration(count * kMicros.at(unit));
  EXPECT_TRUE(words.eof()) << text;
  return sum;
}

// Parses a time such as "12:00", "12:00:30" or "12:00:00.250", with an optional date "2026-03-29 " before it.
TimePoint instant_of(const std::string& text) {
  static const RE2 kForm(R"((?:(\d{4})-(\d\d)-(\d\d) )?(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{3}))?)?)");
  std::array<std::string, 7> part;
  if (!RE2::FullMatch(text, kForm, &part[0], &part[1], &part[2], &part[3], &part[4], &part[5], &part[6]))
    throw std::runtime_error("no time: " + text);
  const auto number = [&](std::size_t at, int otherwise) {
    return part[at].empty() ? otherwise : std::stoi(part[at]);
  };
  const std::chrono::year_month_day date{std::chrono::year(number(0, 2026)),
                                         std::chrono::month(static_cast<unsigned>(number(1, 3))),
                                         std::chrono::day(static_cast<unsigned>(number(2, 2)))};
  return std::chrono::sys_days(date) + std::chrono::hours(number(3, 0)) + std::chrono::minutes(number(4, 0)) +
         std::chrono::seconds(number(5, 0)) + std::chrono::milliseconds(number(6, 0));
}

// Replays one timeline. All its requests have the same key of the rule.
class Timeline {
 public:
  explicit Timeline(const limit::Limiter& limiter) : limiter_(limiter) {}

  void play(const DocumentTable& table, const Cells& row) {
    static const RE2 kRequests(R"((\d+) requests?(?: of (\d+))?)");
    static const RE2 kEndings(R"((\d+) ends?(?: after (.+))?)");
    const auto comes = table.cell(row, "comes");
    now_ = instant_of(table.cell(row, "at"));
    int count = 0;
    std::string more;  // the cost or latency; empty if the cell does not contain it
    if (RE2::FullMatch(comes, kRequests, &count, &more)) {
      request(count, more.empty() ? 1 : std::stoull(more));
      check(table, row);
    } else if (RE2::FullMatch(comes, kEndings, &count, &more)) {
      end(count, more.empty() ? std::nullopt : std::optional(duration_of(more)));
    } else {
      ADD_FAILURE() << "unknown event: " << comes;
    }
  }

 private:
  void request(int count, limit::Cost cost) {
    cost_ = cost;
    admitted_ = refused_ = 0;
    for (int i = 0; i < count; ++i) {
      const auto charge = line();
      (table_.charge({&charge, 1}, now_, {&last_, 1}) ? admitted_ : refused_) += 1;
    }
  }

  void end(int count, std::optional<Duration> latency) {
    for (int i = 0; i < count; ++i) table_.release(line(), now_, {.latency = latency});
  }

  void check(const DocumentTable& table, const Cells& row) const {
    EXPECT_EQ(answer(), table.cell(row, "answer"));
    const auto says = [&](const char* column, auto told) {
      const auto cell = table.cell(row, column);
      EXPECT_TRUE(cell.empty() || cell == std::to_string(told))
          << column << " is " << told << ", not " << cell;
    };
    const auto lasts = [&](const char* column, Duration told) {
      const auto cell = table.cell(row, column);
      EXPECT_TRUE(cell.empty() || duration_of(cell) == told)
          << column << " is " << base::to_string(told) << ", not " << cell;
    };
    says("left", last_.remaining);
    says("limit", limit::quota_of(limiter_, last_));
    lasts("retry after", last_.retry_after);
    lasts("leaves after", last_.delay);
    lasts("fresh after", last_.reset_after);
    if (last_.allowed) return;
    EXPECT_FALSE(table.cell(row, "retry after").empty()) << "a refusal states when to retry";
    check_promise();
  }

  // Checks the column "retry after": a request just before that time is refused, and a request at that time
  // is admitted.
  void check_promise() const {
    if (limit::holds(limiter_) || last_.retry_after == base::kForever) return;
    EXPECT_FALSE(table_.peek(line(), now_ + last_.retry_after - Duration(1)).allowed);
    EXPECT_TRUE(table_.peek(line(), now_ + last_.retry_after).allowed);
  }

  [[nodiscard]] std::string answer() const {
    if (refused_ == 0) return "admitted";
    if (admitted_ == 0) return "refused";
    return std::to_string(admitted_) + " admitted, " + std::to_string(refused_) + " refused";
  }
  [[nodiscard]] limit::Charge line() const { return {.key = {}, .limiter = &limiter_, .cost = cost_}; }

  const limit::Limiter& limiter_;
  limit::KeyTable table_{16};
  TimePoint now_{};
  limit::Cost cost_ = 1;
  limit::Outcome last_;
  int admitted_ = 0, refused_ = 0;
};

bool is_timeline(const DocumentTable& table) {
  return table.header.front() == "at";
}

void play(const DocumentTable& table, const limit::Limiter& limiter) {
  static const std::vector<std::string> kColumns = {
      "at", "comes", "answer", "left", "leaves after", "fresh after", "limit", "retry after", ""};
  EXPECT_THAT(kColumns, ::testing::IsSupersetOf(table.header));
  Timeline timeline(limiter);
  int line = table.line + 1;
  for (const auto& row : table.rows) {
    SCOPED_TRACE("docs/limiters.md:" + std::to_string(++line));
    timeline.play(table, row);
  }
}

TEST(DocumentedTimelines, MatchTheOutcomesOfTheLimiters) {
  std::map<std::string, int> played;  // for each algorithm, the number of its timelines
  for (const auto& section : limiters_document())
    for (const auto& table : section.tables) {
      if (!is_timeline(table)) continue;
      SCOPED_TRACE(section.heading);
      const auto settings = parse_settings(with(section.toml), kFile);
      ASSERT_EQ(settings.rules.size(), 2)
          << "one rule in each section, and the rule of the smallest configuration";
      ++played[limit::algorithm_name(settings.rules[1].limiter)];
      play(table, settings.rules[1].limiter);
    }
  EXPECT_EQ(played.size(), 8) << "every algorithm has a timeline";
}

TEST(DocumentedTimelines, HaveValidConfigurations) {
  const Folder folder;
  policy::CountryFile places;
  places.add("203.0.113.0", 24, "CH");
  for (const auto* name : {"GeoLite2-City.mmdb", "GeoLite2-ASN.mmdb"}) folder.write(name, places.bytes());
  int read = 0;
  for (const auto& section : limiters_document()) {
    if (section.toml.empty()) continue;
    EXPECT_THAT(mistakes_in(with(section.toml), folder.file(kFile)), ::testing::IsEmpty()) << section.heading;
    ++read;
  }
  EXPECT_GE(read, 8);
}

}  // namespace
}  // namespace weir::config::test
