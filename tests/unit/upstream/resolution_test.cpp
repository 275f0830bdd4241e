#include "weir/upstream/resolution.hpp"

#include "unit/upstream/start.hpp"

#include <random>

#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using namespace std::chrono_literals;
using Outcome = Resolution::Outcome;

constexpr std::uint64_t kMiddle = 3'000'000;  // this random number leaves a period of 30 s unchanged

// Returns the addresses 10.0.0.n for the given numbers n.
Addresses at(std::initializer_list<unsigned> numbers) {
  Addresses addresses;
  for (const auto number : numbers)
    addresses.emplace_back(net::asio::ip::tcp::endpoint(net::asio::ip::address_v4(0x0A000000U + number), 80));
  return addresses;
}

const base::Result<Addresses> kNothing = base::Error{"no such host"};

Resolution::Step take(const Addresses& known, const base::Result<Addresses>& answer) {
  return Resolution(30s, kStart, kMiddle).take(known, answer, kStart, kMiddle);
}

TEST(Resolution, IgnoresTheOrderOfAddresses) {
  EXPECT_EQ(take(at({1, 2, 3}), at({3, 1, 2})).outcome, Outcome::Same);
  EXPECT_EQ(take(at({1, 2}), at({2, 1, 1, 2})).outcome, Outcome::Same)
      << "repeated addresses are not a change";
}

TEST(Resolution, KnownAddressesKeepTheirOrderAndNewAddressesFollow) {
  const auto step = take(at({3, 1, 2}), at({4, 1, 3}));
  EXPECT_EQ(step.outcome, Outcome::Changed);
  EXPECT_EQ(step.addresses, at({3, 1, 4}));
  EXPECT_EQ(take(at({1}), at({2})).addresses, at({2}));
  EXPECT_EQ(take(at({1, 2}), at({2})).addresses, at({2})) << "an address that is gone is removed";
  EXPECT_EQ(take(at({}), at({2, 2, 1})).addresses, at({2, 1}));
}

TEST(Resolution, FailedLookUpKeepsTheAddresses) {
  Resolution resolution(30s, kStart, kMiddle);
  auto step = resolution.take(at({1}), kNothing, kStart, kMiddle);
  EXPECT_EQ(step.outcome, Outcome::Failed);
  EXPECT_TRUE(step.turned);
  step = resolution.take(at({1}), at({}), kStart, kMiddle);
  EXPECT_EQ(step.outcome, Outcome::Failed) << "an empty answer is a failure";
  EXPECT_FALSE(step.turned) << "the failure is reported once";
  step = resolution.take(at({1}), at({1}), kStart, kMiddle);
  EXPECT_EQ(step.outcome, Outcome::Same);
  EXPECT_TRUE(step.turned);
  EXPECT_FALSE(resolution.take(at({1}), at({2}), kStart, kMiddle).turned);
}

TEST(Resolution, RetriesSoonWhileNoAddressIsKnown) {
  constexpr std::uint64_t kMiddleOfTwo = 200'000;
  Resolution resolution(30s, kStart, kMiddleOfTwo, true);
  EXPECT_EQ(resolution.due(), kStart + 2s);
  EXPECT_FALSE(resolution.take(at({}), kNothing, kStart, kMiddleOfTwo).turned)
      << "the failure was reported at the start";
  EXPECT_EQ(resolution.due(), kStart + 2s);
  EXPECT_EQ(resolution.take(at({}), at({1}), kStart, kMiddle).outcome, Outcome::Changed);
  EXPECT_EQ(resolution.due(), kStart + 30s);
}

TEST(Resolution, RetriesAtAShortConfiguredPeriodWhileNoAddressIsKnown) {
  EXPECT_EQ(Resolution(1s, kStart, 100'000, true).due(), kStart + 1s);
}

TEST(Resolution, NextLookUpIsOnePeriodAfterTheAnswerWithinATenth) {
  Resolution resolution(30s, kStart, kMiddle);
  EXPECT_EQ(resolution.due(), kStart + 30s);
  (void)resolution.take(at({1}), kNothing, kStart + 45s, kMiddle);
  EXPECT_EQ(resolution.due(), kStart + 75s) << "counted from the answer";
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto least = kStart + 1h;
  auto most = kStart;
  for (int i = 0; i < 10'000; ++i) {
    const auto due = Resolution(30s, kStart, random()).due();
    least = std::min(least, due);
    most = std::max(most, due);
  }
  EXPECT_GE(least, kStart + 27s);
  EXPECT_LE(most, kStart + 33s);
  EXPECT_LT(least, kStart + 27'100ms);
  EXPECT_GT(most, kStart + 32'900ms);
}

TEST(Resolution, UsesOnlyTheFirstAddressesOfAVeryLongAnswer) {
  Addresses many;
  for (unsigned i = 0; i < 1'000; ++i) many.push_back(at({i}).front());
  const auto step = take(at({999}), many);
  EXPECT_EQ(step.addresses.size(), Resolution::kMostAddresses);
  EXPECT_EQ(step.addresses.front(), at({999}).front()) << "the address in use comes first";
  EXPECT_EQ(take(step.addresses, many).outcome, Outcome::Same) << "the addresses stay the same";
}

}  // namespace
}  // namespace weir::upstream
