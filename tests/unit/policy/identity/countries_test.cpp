#include "weir/policy/countries.hpp"

#include "unit/policy/country_file.hpp"
#include "unit/policy/sample.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

class CountriesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(close(mkstemp(name_.data())), 0); }
  void TearDown() override { std::filesystem::remove(name_); }

  [[nodiscard]] base::Result<Countries> open(const std::string& bytes) const {
    std::ofstream(name_, std::ios::binary) << bytes;
    return Countries::open(name_);
  }

  std::string name_ = (std::filesystem::temp_directory_path() / "weir-countries-XXXXXX").string();
};

TEST_F(CountriesTest, LooksUpAddressesOfBothFamilies) {
  CountryFile file;
  file.add("203.0.113.0", 24, "CH");
  file.add("198.51.100.128", 25, "LI");
  file.add("2001:db8::", 32, "DE");
  const auto countries = open(file.bytes());
  ASSERT_TRUE(countries) << countries.error().message;
  EXPECT_EQ(countries->name(), "Test-Country");
  const std::pair<const char*, const char*> cases[] = {{"203.0.113.0", "CH"},    {"203.0.113.255", "CH"},
                                                       {"203.0.114.0", ""},      {"198.51.100.127", ""},
                                                       {"198.51.100.128", "LI"}, {"2001:db8:1::1", "DE"},
                                                       {"2001:db9::", ""},       {"::ffff:203.0.113.9", "CH"},
                                                       {"0.0.0.0", ""},          {"::", ""}};
  for (const auto& [address, country] : cases) EXPECT_EQ(countries->of(ip(address)), country) << address;
}

TEST_F(CountriesTest, LooksUpTheAddressOfTheClientInsteadOfTheProxy) {
  CountryFile file;
  file.add("10.0.0.0", 8, "US");
  file.add("203.0.113.0", 24, "CH");
  ClientSettings settings;
  settings.trusted_proxies = {cidr("10.0.0.0/8")};
  settings.countries = open(file.bytes()).value();
  const auto head = head_with({{"X-Forwarded-For", "203.0.113.7"}});
  EXPECT_EQ(identify(settings, ip("10.0.0.1"), head).country, "CH");
  EXPECT_EQ(identify(settings, ip("203.0.113.9"), head).country, "CH");
  EXPECT_EQ(identify(settings, ip("192.0.2.1"), head).country, "");
}

TEST_F(CountriesTest, CopyWorksAfterTheFileAndTheOriginalAreGone) {
  CountryFile file;
  file.add("203.0.113.0", 24, "CH");
  Countries copy = [&] { return open(file.bytes()).value(); }();
  std::filesystem::remove(name_);
  EXPECT_EQ(copy.of(ip("203.0.113.1")), "CH");
}

TEST_F(CountriesTest, RejectsADamagedFile) {
  CountryFile file;
  file.add("203.0.113.0", 24, "CH");
  const auto bytes = file.bytes();
  EXPECT_FALSE(open(""));
  EXPECT_FALSE(open("no database at all"));
  EXPECT_FALSE(open(bytes.substr(0, bytes.size() - 100)));
  EXPECT_FALSE(Countries::open("/nowhere/at.all"));
}

}  // namespace
}  // namespace weir::policy
