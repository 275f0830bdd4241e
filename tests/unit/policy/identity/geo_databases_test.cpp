#include "weir/policy/identity/geo_databases.hpp"

#include "unit/policy/country_file.hpp"
#include "unit/policy/sample.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

class GeoDatabasesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(close(mkstemp(name_.data())), 0); }
  void TearDown() override { std::filesystem::remove(name_); }

  [[nodiscard]] base::Result<GeoDatabases> open(const std::string& bytes) const {
    std::filesystem::remove(name_);  // an earlier database stays mapped, so its file must not change
    std::ofstream(name_, std::ios::binary) << bytes;
    return GeoDatabases::open(name_);
  }

  static std::string country(const GeoDatabases& databases, std::string_view address) {
    GeoTexts texts;
    return std::string(databases.find(ip(address), texts).country);
  }

  std::string name_ = (std::filesystem::temp_directory_path() / "weir-geo-XXXXXX").string();
};

TEST_F(GeoDatabasesTest, LooksUpAddressesOfBothFamilies) {
  CountryFile file;
  file.add("203.0.113.0", 24, "CH");
  file.add("198.51.100.128", 25, "LI");
  file.add("2001:db8::", 32, "DE");
  const auto countries = open(file.bytes());
  ASSERT_TRUE(countries) << countries.error().message;
  EXPECT_EQ(countries->names(), "Test-Country");
  const std::pair<const char*, const char*> cases[] = {{"203.0.113.0", "CH"},    {"203.0.113.255", "CH"},
                                                       {"203.0.114.0", ""},      {"198.51.100.127", ""},
                                                       {"198.51.100.128", "LI"}, {"2001:db8:1::1", "DE"},
                                                       {"2001:db9::", ""},       {"::ffff:203.0.113.9", "CH"},
                                                       {"0.0.0.0", ""},          {"::", ""}};
  for (const auto& [address, expected] : cases) EXPECT_EQ(country(*countries, address), expected) << address;
}

TEST_F(GeoDatabasesTest, AddressOfTheClientIsLookedUpAndNotThatOfTheProxy) {
  CountryFile file;
  file.add("10.0.0.0", 8, "US");
  file.add("203.0.113.0", 24, "CH");
  ClientSettings settings;
  settings.trusted_proxies = {cidr("10.0.0.0/8")};
  settings.geo = open(file.bytes()).value();
  const auto head = head_with({{"X-Forwarded-For", "203.0.113.7"}});
  EXPECT_EQ(identify(settings, ip("10.0.0.1"), head).country, "CH");
  EXPECT_EQ(identify(settings, ip("203.0.113.9"), head).country, "CH");
  EXPECT_EQ(identify(settings, ip("192.0.2.1"), head).country, "");
}

TEST_F(GeoDatabasesTest, CityAndNetworkOfAnAddressMayComeFromDifferentDatabases) {
  CountryFile cities, systems;
  cities.add_city("203.0.113.0", 24, "CH", "GE", "Geneva");
  cities.add_city("2001:db8::", 32, "FR", "IDF", "Paris");
  systems.add_asn("203.0.113.0", 25, 3303);
  systems.add_asn("198.51.100.0", 24, 4'294'967'295);
  ClientSettings settings;
  settings.geo = open(cities.bytes()).value();
  settings.geo->add(open(systems.bytes()).value());
  EXPECT_EQ(settings.geo->names(), "Test-Country, Test-Country");
  const auto head = head_with({});
  const auto places = [&](std::string_view address) {
    const auto client = identify(settings, ip(address), head);
    return std::string(client.country) + "/" + std::string(client.region) + "/" + std::string(client.city) +
           "/" + std::string(client.asn);
  };
  EXPECT_EQ(places("203.0.113.1"), "CH/CH-GE/Geneva/AS3303");
  EXPECT_EQ(places("203.0.113.200"), "CH/CH-GE/Geneva/");
  EXPECT_EQ(places("198.51.100.1"), "///AS4294967295");
  EXPECT_EQ(places("2001:db8::1"), "FR/FR-IDF/Paris/");
  EXPECT_EQ(places("192.0.2.1"), "///");
}

TEST_F(GeoDatabasesTest, EachPartOfAPlaceComesFromTheFirstDatabaseThatHasIt) {
  CountryFile first, second;
  first.add("203.0.113.0", 24, "CH");
  second.add_city("203.0.113.0", 24, "LI", "11", "Vaduz");
  auto databases = open(first.bytes()).value();
  databases.add(open(second.bytes()).value());
  GeoTexts texts;
  const auto place = databases.find(ip("203.0.113.1"), texts);
  EXPECT_EQ(place.country, "CH");
  EXPECT_EQ(place.region, "LI-11");
  EXPECT_EQ(place.city, "Vaduz");
}

TEST_F(GeoDatabasesTest, CopyOfADatabaseWorksAfterTheFileAndTheOriginalAreGone) {
  CountryFile file;
  file.add("203.0.113.0", 24, "CH");
  GeoDatabases copy = [&] { return open(file.bytes()).value(); }();
  std::filesystem::remove(name_);
  EXPECT_EQ(country(copy, "203.0.113.1"), "CH");
}

TEST_F(GeoDatabasesTest, RejectsADamagedFile) {
  CountryFile file;
  file.add("203.0.113.0", 24, "CH");
  const auto bytes = file.bytes();
  EXPECT_FALSE(open(""));
  EXPECT_FALSE(open("no database at all"));
  EXPECT_FALSE(open(bytes.substr(0, bytes.size() - 100)));
  EXPECT_FALSE(GeoDatabases::open("/nowhere/at.all"));
}

}  // namespace
}  // namespace weir::policy
