// Looks up where an address is, in databases of MaxMind's format (such as GeoLite2-Country, GeoLite2-City and
// GeoLite2-ASN).
//
// Each file is mapped into memory once and is then immutable. Any thread may look up addresses. Copies share
// the mapping.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/result.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// Where an address is. A text is empty if no database knows it.
struct GeoLocation {
  std::string_view country;  // country.iso_code: "CH"
  std::string_view city;     // city.names.en: "Geneva"
  std::string_view region;   // the country and subdivisions[0].iso_code, as in ISO 3166-2: "CH-GE"
  std::string_view asn;      // autonomous_system_number: "AS3303"
};

// Storage for the texts that weir composes itself: GeoLocation::region and GeoLocation::asn.
struct GeoTexts {
  std::array<char, 8> region{};
  std::array<char, 12> asn{};
};

// Which members of a GeoLocation the databases can fill in.
struct GeoContents {
  bool countries = false;
  bool cities = false;  // cities and regions
  bool asns = false;
};

class GeoDatabases {
 public:
  // Opens a database. The error says what is wrong with the file.
  [[nodiscard]] static base::Result<GeoDatabases> open(const std::string& file);
  // Adds the databases of `more`. find() asks them only for what the earlier databases do not know.
  void add(const GeoDatabases& more);

  // Returns the place of an address. Its views live as long as the databases and `texts`. Allocates nothing.
  [[nodiscard]] GeoLocation find(const base::IpAddress& address, GeoTexts& texts) const noexcept;

  // Returns the names that the databases state, such as "GeoLite2-City, GeoLite2-ASN".
  [[nodiscard]] std::string names() const;
  // Returns what the databases can fill in, judged by their names. A database whose name weir does not know
  // counts as having everything.
  [[nodiscard]] GeoContents contents() const noexcept;

 private:
  struct Database;
  std::vector<std::shared_ptr<const Database>> databases_;  // shared: immutable mapped files
};

}  // namespace weir::policy
