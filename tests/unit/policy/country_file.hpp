// A small database in MaxMind's format (MaxMind DB file format specification 2.0), which maps networks to
// countries, cities or autonomous systems. With it the tests need no external file.
#pragma once

#include "weir/base/ip_address.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::policy {

class CountryFile {
 public:
  CountryFile() = default;
  // `type`: the name that the database states, of at most 28 octets.
  explicit CountryFile(std::string type) : type_(std::move(type)) {}
  // `bits` is the length of the network's prefix. For IPv4 it is the length within the IPv4 address.
  // REQUIRES: no network contains another.
  void add(std::string_view address, int bits, std::string_view country) {
    add_data(address, bits, map(1) + country_of(country));
  }
  // `region`: the code of the subdivision without the country.
  void add_city(std::string_view address, int bits, std::string_view country, std::string_view region,
                std::string_view city) {
    add_data(address, bits,
             map(3) + country_of(country) + text("city") + map(1) + text("names") + map(1) + text("en") +
                 text(city) + text("subdivisions") + std::string("\x01\x04") + map(1) + text("iso_code") +
                 text(region));
  }
  void add_asn(std::string_view address, int bits, std::uint32_t asn) {
    add_data(address, bits, map(1) + text("autonomous_system_number") + '\xc4' + number(asn, 4));
  }

  [[nodiscard]] std::string bytes() const {
    std::string file;
    const auto count = static_cast<std::int64_t>(nodes_.size());
    for (const auto& node : nodes_)
      for (const auto record : node)
        file += number(record == kNothing ? count : record < 0 ? count + 16 - (record + 1) : record, 3);
    return file + std::string(16, '\0') + data_ + "\xab\xcd\xefMaxMind.com" + metadata();
  }

 private:
  static constexpr std::int64_t kNothing = 0;  // stands for "no data", because no record refers to the root

  void add_data(std::string_view address, int bits, const std::string& data) {
    const auto ip = base::IpAddress::parse(address).value();
    auto bytes = ip.bytes();
    if (ip.is_v4()) {
      bits += 96;
      bytes[10] = bytes[11] = 0;  // the tree stores IPv4 addresses below ::/96
    }
    const auto leaf = -static_cast<std::int64_t>(data_.size()) - 1;
    data_ += data;
    std::size_t node = 0;
    for (int i = 0; i < bits; ++i) {
      const auto bit = static_cast<std::size_t>(bytes[static_cast<std::size_t>(i) / 8] >> (7 - i % 8) & 1);
      if (i + 1 == bits) {
        nodes_[node][bit] = leaf;
      } else {
        if (nodes_[node][bit] == kNothing) {
          nodes_[node][bit] = static_cast<std::int64_t>(nodes_.size());
          nodes_.push_back({kNothing, kNothing});
        }
        node = static_cast<std::size_t>(nodes_[node][bit]);
      }
    }
  }

  static std::string country_of(std::string_view country) {
    return text("country") + map(1) + text("iso_code") + text(country);
  }
  static std::string number(std::int64_t value, int octets) {
    std::string big_endian;
    for (int i = octets - 1; i >= 0; --i) big_endian.push_back(static_cast<char>(value >> (8 * i)));
    return big_endian;
  }
  static std::string map(int entries) { return {static_cast<char>(0xe0 | entries)}; }
  // Encodes a string. REQUIRES: `text` has at most 28 octets; the format encodes longer sizes differently.
  static std::string text(std::string_view text) {
    return static_cast<char>(0x40 | text.size()) + std::string(text);
  }
  static std::string whole16(int value) { return '\xa2' + number(value, 2); }

  [[nodiscard]] std::string metadata() const {
    return map(9) + text("node_count") + '\xc4' + number(static_cast<std::int64_t>(nodes_.size()), 4) +
           text("record_size") + whole16(24) + text("ip_version") + whole16(6) + text("database_type") +
           text(type_) + text("languages") + std::string("\x01\x04") + text("en") +
           text("binary_format_major_version") + whole16(2) + text("binary_format_minor_version") +
           whole16(0) + text("build_epoch") + std::string("\x04\x02") + number(1'700'000'000, 4) +
           text("description") + map(1) + text("en") + text("a test");
  }

  std::vector<std::array<std::int64_t, 2>> nodes_{{kNothing, kNothing}};
  std::string data_;
  std::string type_ = "Test-Country";
};

}  // namespace weir::policy
