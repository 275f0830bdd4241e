// Which country an address is in, by a database in MaxMind's format (GeoLite2-Country and its like).
//
// The file is mapped into memory once; immutable and pure from then on, any thread may ask. Copies share it.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/result.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace weir::policy {

class Countries {
 public:
  // An error says what is wrong with the file.
  [[nodiscard]] static base::Result<Countries> open(const std::string& file);

  // "CH": what the database says under country.iso_code, which lives as long as it does; empty where it does
  // not know. Allocates nothing.
  [[nodiscard]] std::string_view of(const base::IpAddress& address) const noexcept;

  // What the database calls itself: "GeoLite2-Country".
  [[nodiscard]] std::string name() const;

 private:
  struct Database;
  explicit Countries(std::shared_ptr<const Database> database) noexcept : database_(std::move(database)) {}
  std::shared_ptr<const Database> database_;  // shared: a mapped file that never changes
};

}  // namespace weir::policy
