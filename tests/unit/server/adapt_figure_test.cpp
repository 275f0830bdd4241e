// Simulates a server whose answers get slower beyond a load, behind a rule with and without `adapt`. Uses
// weir's own limiter, and weir's function that computes the next factor. Draws the figure of
// docs/design/adapt.md and checks the numbers of that page. After a change, WEIR_WRITE_FIGURES=1 makes the
// test write the figure.
//
// The simulation uses no random numbers: requests arrive at even intervals, and each step is a millisecond.
#include "unit/config/configuration.hpp"

#include "weir/limit/adapt.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace weir::server {
namespace {

using ::testing::HasSubstr;

constexpr int kSeconds = 70, kRush = 10, kRushEnd = 50;  // the rush lasts from second 10 to 50
constexpr int kUsual = 60, kRushed = 180;                // requests a second
constexpr int kTimeout = 2000;                           // ms
constexpr limit::AdaptTerms kTerms{
    .latency_above = std::chrono::milliseconds(200), .errors_above = 5, .floor = 4};

struct Second {
  int factor = 100;  // percent
  int good = 0, refused = 0, failed = 0;
};

// A server with one worker and a queue. It answers 100 requests a second while few requests wait, and 50 a
// second if 100 wait. It also answers requests that weir has already given up.
class Server {
 public:
  // Returns true if the server completes an answer at `now`. Sets `at` to the time at which the answered
  // request arrived.
  bool answers(int now, int& at) {
    const bool done = busy_ && now >= ready_;
    if (done) at = current_;
    if (done) busy_ = false;
    if (!busy_ && !queue_.empty()) {
      ready_ = now + 10 + std::min<int>(static_cast<int>(queue_.size()), 100) / 10;
      current_ = queue_.front();
      queue_.pop_front();
      busy_ = true;
    }
    return done;
  }
  void take(int now) { queue_.push_back(now); }

 private:
  std::deque<int> queue_;  // when each request arrived
  bool busy_ = false;
  int ready_ = 0, current_ = 0;
};

class Simulation {
 public:
  explicit Simulation(bool adapts) : adapts_(adapts) {
    for (limit::Factor factor = 1; factor <= limit::kWholeFactor; ++factor)
      limiters_.push_back(limit::scaled(whole_, factor, 1).value());
  }
  std::vector<Second> run() {
    std::vector<Second> seconds;
    for (int second = 0; second < kSeconds; ++second) {
      now_ = Second{.factor = static_cast<int>(limit::percent_of(factor_))};
      for (int ms = second * 1000; ms < (second + 1) * 1000; ++ms) pass(ms);
      seconds.push_back(now_);
      if (adapts_) factor_ = limit::adapted(kTerms, answers_, factor_);
      answers_ = {};
    }
    return seconds;
  }

 private:
  void pass(int ms) {
    offered_ += ms >= kRush * 1000 && ms < kRushEnd * 1000 ? kRushed : kUsual;
    if (offered_ >= 1000) {
      offered_ -= 1000;
      request(ms);
    }
    for (; !waiting_.empty() && ms - waiting_.front() >= kTimeout; waiting_.pop_front()) {
      ++now_.failed;
      note(kTimeout, true);
    }
    int arrived = 0;
    if (!server_.answers(ms, arrived) || waiting_.empty() || waiting_.front() != arrived) return;
    waiting_.pop_front();
    ++now_.good;
    note(ms - arrived, false);
  }
  void request(int ms) {
    const auto at = base::TimePoint(std::chrono::hours(1) + std::chrono::milliseconds(ms));
    const auto step = limit::step(limiters_[factor_ - 1U], cell_, at, 1);
    if (!step.outcome.allowed) {
      ++now_.refused;
      return;
    }
    cell_ = step.next;
    server_.take(ms);
    waiting_.push_back(ms);
  }
  void note(int ms, bool failed) {
    ++answers_.all;
    ++answers_.measured;
    answers_.failed += failed ? 1 : 0;
    answers_.time += std::chrono::milliseconds(ms);
  }

  const bool adapts_;
  const limit::Limiter whole_ = limit::TokenBucket::make({200, std::chrono::seconds(1)}, 20).value();
  std::vector<limit::Limiter> limiters_;
  limit::Factor factor_ = limit::kWholeFactor;
  limit::Cell cell_;
  limit::UpstreamAnswers answers_;
  Server server_;
  std::deque<int> waiting_;  // the times at which weir sent the requests that have no answer yet
  int offered_ = 0;          // thousandths of a request
  Second now_;
};

int sum(const std::vector<Second>& all, int from, int to, int Second::*member) {
  return std::accumulate(all.begin() + from, all.begin() + to, 0,
                         [&](int so_far, const Second& one) { return so_far + one.*member; });
}

// Returns one row of the page's table: the numbers of requests with each result from second `from` to second
// `to`.
std::string row(const std::string& what, const std::vector<Second>& all, int from, int to) {
  return "| " + what + " | " + std::to_string(sum(all, from, to, &Second::good)) + " | " +
         std::to_string(sum(all, from, to, &Second::failed)) + " | " +
         std::to_string(sum(all, from, to, &Second::refused)) + " |";
}

constexpr int kLeft = 50, kTop = 40, kWidth = 630, kHeight = 200;

int x_of(std::size_t second) {
  return kLeft + static_cast<int>(second) * kWidth / kSeconds;
}
int y_of(int value) {
  return kTop + kHeight - value * kHeight / 200;
}

std::string text(int x, int y, const std::string& anchor, const std::string& words,
                 const std::string& colour = "#333") {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" text-anchor=\"" + anchor +
         "\" fill=\"" + colour + "\">" + words + "</text>\n";
}

std::string line(const std::vector<int>& values, const std::string& colour, const std::string& style = "") {
  std::string points;
  for (std::size_t second = 0; second < values.size(); ++second)
    points +=
        (second == 0 ? "" : " ") + std::to_string(x_of(second)) + "," + std::to_string(y_of(values[second]));
  return "<polyline fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"2\"" + style + " points=\"" +
         points + "\"/>\n";
}

std::string axes() {
  std::string svg;
  for (int value = 0; value <= 200; value += 50) {
    const auto y = std::to_string(y_of(value));
    svg += "<line x1=\"" + std::to_string(kLeft) + "\" x2=\"" + std::to_string(kLeft + kWidth) + "\" y1=\"" +
           y + "\" y2=\"" + y + "\" stroke=\"#ddd\"/>\n" +
           text(kLeft - 6, y_of(value) + 4, "end", std::to_string(value));
  }
  for (int second = 0; second <= kSeconds; second += 10)
    svg += text(x_of(static_cast<std::size_t>(second)), kTop + kHeight + 18, "middle",
                std::to_string(second) + " s");
  return svg;
}

std::string figure(const std::vector<Second>& without, const std::vector<Second>& with) {
  const auto values = [](const std::vector<Second>& all, int Second::*member) {
    std::vector<int> list;
    for (const auto& one : all) list.push_back(one.*member);
    return list;
  };
  std::vector<int> offered;
  for (int second = 0; second < kSeconds; ++second)
    offered.push_back(second >= kRush && second < kRushEnd ? kRushed : kUsual);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 700 270\" font-family=\"sans-serif\" "
         "font-size=\"12\">\n<rect width=\"700\" height=\"270\" fill=\"#fff\"/>\n" +
         axes() + line(offered, "#999", " stroke-dasharray=\"4 3\"") +
         line(values(without, &Second::good), "#c0392b") + line(values(with, &Second::good), "#1f77b4") +
         line(values(with, &Second::factor), "#2ca02c", " stroke-dasharray=\"1 2\"") +
         text(kLeft, 20, "start", "requests a second", "#777") +
         text(175, 20, "start", "good answers without adapt", "#c0392b") +
         text(365, 20, "start", "good answers with adapt", "#1f77b4") +
         text(540, 20, "start", "factor with adapt, %", "#2ca02c") + "</svg>\n";
}

class AdaptFigure : public testing::Test {
 protected:
  const std::filesystem::path page_ = std::filesystem::path(WEIR_TREE) / "docs" / "design";
  const std::vector<Second> without_ = Simulation(false).run(), with_ = Simulation(true).run();
};

TEST_F(AdaptFigure, RuleWithAdaptGetsTenTimesAsManyGoodAnswersFromAnOverloadedServer) {
  EXPECT_GT(sum(with_, kRush, kRushEnd, &Second::good), 10 * sum(without_, kRush, kRushEnd, &Second::good));
  EXPECT_EQ(sum(without_, kRushEnd, kSeconds, &Second::good), 0) << "the queue outlasts the rush";
  EXPECT_EQ(with_.back().factor, 100) << "the whole limit returns";
  EXPECT_EQ(with_.back().good, kUsual);
}

TEST_F(AdaptFigure, DesignPageShowsTheNumbersOfTheSimulation) {
  const auto page = config::test::contents((page_ / "adapt.md").string());
  for (const auto& one :
       {row("rush, without", without_, kRush, kRushEnd), row("rush, with", with_, kRush, kRushEnd),
        row("afterwards, without", without_, kRushEnd, kSeconds),
        row("afterwards, with", with_, kRushEnd, kSeconds)})
    EXPECT_THAT(page, HasSubstr(one));
}

TEST_F(AdaptFigure, FigureInTheDesignPageEqualsTheSimulation) {
  const auto file = page_ / "adapt.svg";
  const auto wanted = figure(without_, with_);
  if (std::getenv("WEIR_WRITE_FIGURES") != nullptr) std::ofstream(file) << wanted;
  EXPECT_EQ(config::test::contents(file.string()), wanted)
      << "run this test with WEIR_WRITE_FIGURES=1 to draw the figure again";
}

}  // namespace
}  // namespace weir::server
