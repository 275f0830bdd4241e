// Looks up the country of an address in a database of MaxMind's format (such as GeoLite2-Country).
//
// The file is mapped into memory once and is then immutable. Any thread may look up addresses. Copies share
// the mapping.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/result.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace weir::policy {

class Countries {
 public:
  // Opens a database. The error says what is wrong with the file.
  [[nodiscard]] static base::Result<Countries> open(const std::string& file);

  // Returns the country code of an address (country.iso_code in the database), such as "CH". Returns an empty
  // text if the country is unknown. The view lives as long as the database. Allocates nothing.
  [[nodiscard]] std::string_view of(const base::IpAddress& address) const noexcept;

  // Returns the name that the database states, such as "GeoLite2-Country".
  [[nodiscard]] std::string name() const;

 private:
  struct Database;
  explicit Countries(std::shared_ptr<const Database> database) noexcept : database_(std::move(database)) {}
  std::shared_ptr<const Database> database_;  // shared: an immutable mapped file
};

}  // namespace weir::policy
