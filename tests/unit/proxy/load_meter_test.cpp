#include "weir/proxy/load_meter.hpp"

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::milliseconds;

TEST(LoadMeter, IsTheShareOfTheLastMoments) {
  const base::TimePoint start{std::chrono::seconds(1'700'000'000)};
  LoadMeter meter(start);
  base::Duration computed{0};
  int readings = 0;
  const auto load = [&](int after, int of_it) {
    computed = milliseconds(of_it);
    return meter.at(start + milliseconds(after), [&] {
      ++readings;
      return computed;
    });
  };
  EXPECT_EQ(load(0, 0), 1);  // nothing is known yet
  EXPECT_EQ(load(99, 0), 1);
  EXPECT_EQ(load(100, 25), 0.25);
  EXPECT_EQ(load(199, 120), 0.25);  // the moment is not over
  EXPECT_EQ(load(300, 225), 1);
  EXPECT_EQ(load(10'300, 225), 0);
  EXPECT_EQ(load(10'400, 400), 1);  // more than there was time for: clocks differ a little
  EXPECT_EQ(readings, 4);
}

TEST(LoadMeter, ReadsTheTimeOfItsThread) {
  const auto before = thread_time();
  EXPECT_GE(before.count(), 0);
  while (thread_time() == before) {
  }
  EXPECT_GT(thread_time(), before);
}

}  // namespace
}  // namespace weir::proxy
