#include "weir/upstream/resolution.hpp"

#include "unit/upstream/start.hpp"

#include <optional>
#include <random>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using namespace std::chrono_literals;
using Outcome = Resolution::Outcome;

// A random number changes a period by up to a tenth. This one, a tenth of 30 s in microseconds, leaves a
// period of 30 s unchanged.
constexpr std::uint64_t kMiddle = 3'000'000;

// Returns the addresses 10.0.0.n for the given numbers n.
Addresses at(std::initializer_list<unsigned> numbers) {
  Addresses addresses;
  for (const auto number : numbers)
    addresses.emplace_back(net::asio::ip::tcp::endpoint(net::asio::ip::address_v4(0x0A000000U + number), 80));
  return addresses;
}

const base::Result<net::NameAnswer> kNothing = base::Error{"no such host"};

// Returns an answer with these addresses, and perhaps a TTL.
net::NameAnswer answer(Addresses addresses, std::optional<base::Duration> ttl = std::nullopt) {
  return {std::move(addresses), ttl};
}

constexpr Resolution::Period kPeriod{1s, 30s};

Resolution::Step take(const Addresses& known, const Addresses& told) {
  return Resolution(kPeriod, kStart).take(known, answer(told), kStart, kMiddle);
}

TEST(Resolution, AddressesInAnotherOrderAreNoChange) {
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
  Resolution resolution(kPeriod, kStart);
  auto step = resolution.take(at({1}), kNothing, kStart, kMiddle);
  EXPECT_EQ(step.outcome, Outcome::Failed);
  EXPECT_TRUE(step.turned);
  step = resolution.take(at({1}), answer({}), kStart, kMiddle);
  EXPECT_EQ(step.outcome, Outcome::Failed) << "an empty answer is a failure";
  EXPECT_FALSE(step.turned) << "the failure is reported once";
  step = resolution.take(at({1}), answer(at({1})), kStart, kMiddle);
  EXPECT_EQ(step.outcome, Outcome::Same);
  EXPECT_TRUE(step.turned);
  EXPECT_FALSE(resolution.take(at({1}), answer(at({2})), kStart, kMiddle).turned);
}

TEST(Resolution, FailedLookUpIsRepeatedSoon) {
  Resolution resolution(kPeriod, kStart, true);
  EXPECT_EQ(resolution.due(), kStart + 2s);
  EXPECT_FALSE(resolution.take(at({}), kNothing, kStart, kMiddle).turned)
      << "the failure was reported at the start";
  EXPECT_EQ(resolution.due(), kStart + 2s);
  EXPECT_EQ(resolution.take(at({}), answer(at({1})), kStart, kMiddle).outcome, Outcome::Changed);
  EXPECT_EQ(resolution.due(), kStart + 30s);
  (void)resolution.take(at({1}), kNothing, kStart + 30s, kMiddle);
  EXPECT_EQ(resolution.due(), kStart + 32s);
}

TEST(Resolution, NextLookUpAfterAFailureIsWithinTheConfiguredPeriod) {
  EXPECT_EQ(Resolution({100ms, 1s}, kStart, true).due(), kStart + 1s);
  EXPECT_EQ(Resolution({5s, 30s}, kStart, true).due(), kStart + 5s);
}

TEST(Resolution, NameWithAnUnknownTtlIsLookedUpAfterASecond) {
  EXPECT_EQ(Resolution(kPeriod, kStart).due(), kStart + 1s);
}

TEST(Resolution, NextLookUpIsDueAtTheEndOfTheTtlWithinTheBoundsOfThePeriod) {
  const auto wait = [](std::optional<base::Duration> ttl) {
    Resolution resolution(kPeriod, kStart);
    (void)resolution.take(at({1}), answer(at({1}), ttl), kStart + 45s, kMiddle);
    return resolution.due() - (kStart + 45s);
  };
  EXPECT_EQ(wait(5s), 5s) << "counted from the answer";
  EXPECT_EQ(wait(0s), 1s);
  EXPECT_EQ(wait(1h), 30s);
  EXPECT_EQ(wait(std::nullopt), 30s) << "the name is in /etc/hosts";
}

TEST(Resolution, LongestTimeBetweenLookUpsVariesRandomlyByATenth) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto least = kStart + 1h;
  auto most = kStart;
  for (int i = 0; i < 10'000; ++i) {
    Resolution resolution(kPeriod, kStart);
    (void)resolution.take(at({1}), answer(at({1})), kStart, random());
    least = std::min(least, resolution.due());
    most = std::max(most, resolution.due());
  }
  EXPECT_GE(least, kStart + 27s);
  EXPECT_LE(most, kStart + 33s);
  EXPECT_LT(least, kStart + 27'100ms);
  EXPECT_GT(most, kStart + 32'900ms);
}

TEST(Resolution, OnlyTheFirstAddressesOfAVeryLongAnswerAreUsed) {
  Addresses many;
  for (unsigned i = 0; i < 1'000; ++i) many.push_back(at({i}).front());
  const auto step = take(at({999}), many);
  EXPECT_EQ(step.addresses.size(), Resolution::kMostAddresses);
  EXPECT_EQ(step.addresses.front(), at({999}).front()) << "the address in use comes first";
  EXPECT_EQ(take(step.addresses, many).outcome, Outcome::Same) << "the addresses stay the same";
}

}  // namespace
}  // namespace weir::upstream
