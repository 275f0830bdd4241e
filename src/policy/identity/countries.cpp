#include "weir/policy/countries.hpp"

#include <cstring>

#include <maxminddb.h>
#include <netinet/in.h>

namespace weir::policy {

struct Countries::Database {
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

}  // namespace

base::Result<Countries> Countries::open(const std::string& file) {
  auto database = std::make_shared<Database>();
  const int error = MMDB_open(file.c_str(), MMDB_MODE_MMAP, &database->mmdb);
  if (error != MMDB_SUCCESS) return base::Error{MMDB_strerror(error)};
  database->open = true;
  return Countries(std::move(database));
}

std::string_view Countries::of(const base::IpAddress& address) const noexcept {
  static constexpr const char* kPath[] = {"country", "iso_code", nullptr};
  int error = MMDB_SUCCESS;
  auto found = look_up(database_->mmdb, address, error);
  if (error != MMDB_SUCCESS || !found.found_entry) return {};
  MMDB_entry_data_s code{};
  error = MMDB_aget_value(&found.entry, &code, kPath);
  if (error != MMDB_SUCCESS || !code.has_data || code.type != MMDB_DATA_TYPE_UTF8_STRING) return {};
  return {code.utf8_string, code.data_size};
}

std::string Countries::name() const {
  return database_->mmdb.metadata.database_type;
}

}  // namespace weir::policy
