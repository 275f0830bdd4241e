#include "weir/policy/identity/geo_databases.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include <maxminddb.h>
#include <netinet/in.h>

namespace weir::policy {

struct GeoDatabases::Database {
  Database() = default;
  ~Database() {
    if (open) MMDB_close(&mmdb);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  MMDB_s mmdb{};
  bool open = false;
};

namespace {

MMDB_lookup_result_s look_up(const MMDB_s& mmdb, const base::IpAddress& address, int& error) noexcept {
  const auto& bytes = address.bytes();
  if (address.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_addr, bytes.data() + 12, 4);
    return MMDB_lookup_sockaddr(&mmdb, reinterpret_cast<const sockaddr*>(&v4), &error);
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  std::memcpy(&v6.sin6_addr, bytes.data(), bytes.size());
  return MMDB_lookup_sockaddr(&mmdb, reinterpret_cast<const sockaddr*>(&v6), &error);
}

using Entry = MMDB_entry_s;

// Reads the entry's value under `path` into `data`. Returns false if the entry has no value of this type
// under the path. `type`: an MMDB_DATA_TYPE_… value.
bool get(Entry& entry, std::uint32_t type, const char* const* path, MMDB_entry_data_s& data) noexcept {
  return MMDB_aget_value(&entry, &data, path) == MMDB_SUCCESS && data.has_data && data.type == type;
}

std::string_view text_at(Entry& entry, const char* const* path) noexcept {
  MMDB_entry_data_s data{};
  if (!get(entry, MMDB_DATA_TYPE_UTF8_STRING, path, data)) return {};
  return {data.utf8_string, data.data_size};
}

// Returns the region's code with the country before it, because codes of regions repeat between countries.
std::string_view region_at(Entry& entry, std::string_view country, GeoTexts& texts) noexcept {
  static constexpr const char* kPath[] = {"subdivisions", "0", "iso_code", nullptr};
  const auto code = text_at(entry, kPath);
  auto& room = texts.region;
  if (code.empty() || country.empty() || country.size() + 1 + code.size() > room.size()) return {};
  auto* end = std::copy(country.begin(), country.end(), room.data());
  *end++ = '-';
  end = std::copy(code.begin(), code.end(), end);
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

std::string_view asn_at(Entry& entry, GeoTexts& texts) noexcept {
  static constexpr const char* kPath[] = {"autonomous_system_number", nullptr};
  MMDB_entry_data_s data{};
  if (!get(entry, MMDB_DATA_TYPE_UINT32, kPath, data)) return {};
  auto& room = texts.asn;
  room[0] = 'A';
  room[1] = 'S';
  const auto written = std::to_chars(room.data() + 2, room.data() + room.size(), data.uint32);
  return {room.data(), static_cast<std::size_t>(written.ptr - room.data())};
}

// Returns which data a database with this name may contain.
GeoContents contents_of(std::string_view name) noexcept {
  constexpr GeoContents kAll{true, true, true};
  for (const std::string_view vendor : {"GeoLite2-", "GeoIP2-", "DBIP-"}) {
    if (!name.starts_with(vendor)) continue;
    name.remove_prefix(vendor.size());
    if (name.starts_with("Country")) return {.countries = true};
    if (name.starts_with("City")) return {.countries = true, .cities = true};
    return name.starts_with("ASN") || name.starts_with("ISP") ? GeoContents{.asns = true} : kAll;
  }
  return kAll;
}

}  // namespace

base::Result<GeoDatabases> GeoDatabases::open(const std::string& file) {
  auto database = std::make_shared<Database>();
  const int error = MMDB_open(file.c_str(), MMDB_MODE_MMAP, &database->mmdb);
  if (error != MMDB_SUCCESS) return base::Error{MMDB_strerror(error)};
  database->open = true;
  GeoDatabases opened;
  opened.databases_.push_back(std::move(database));
  return opened;
}

void GeoDatabases::add(const GeoDatabases& more) {
  databases_.insert(databases_.end(), more.databases_.begin(), more.databases_.end());
}

GeoLocation GeoDatabases::find(const base::IpAddress& address, GeoTexts& texts) const noexcept {
  static constexpr const char* kCountry[] = {"country", "iso_code", nullptr};
  static constexpr const char* kCity[] = {"city", "names", "en", nullptr};
  GeoLocation location;
  for (const auto& database : databases_) {
    int error = MMDB_SUCCESS;
    auto found = look_up(database->mmdb, address, error);
    if (error != MMDB_SUCCESS || !found.found_entry) continue;
    if (location.country.empty()) location.country = text_at(found.entry, kCountry);
    if (location.city.empty()) location.city = text_at(found.entry, kCity);
    if (location.region.empty())
      location.region = region_at(found.entry, text_at(found.entry, kCountry), texts);
    if (location.asn.empty()) location.asn = asn_at(found.entry, texts);
  }
  return location;
}

GeoContents GeoDatabases::contents() const noexcept {
  GeoContents all;
  for (const auto& database : databases_) {
    const auto one = contents_of(database->mmdb.metadata.database_type);
    all = {all.countries || one.countries, all.cities || one.cities, all.asns || one.asns};
  }
  return all;
}

std::string GeoDatabases::names() const {
  std::string names;
  for (const auto& database : databases_)
    names += (names.empty() ? "" : ", ") + std::string(database->mmdb.metadata.database_type);
  return names;
}

}  // namespace weir::policy
