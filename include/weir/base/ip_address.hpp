// IP addresses and CIDR blocks as values. An IPv4 address equals its IPv4-mapped IPv6 form.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::base {

// An address of 16 bytes in network order. IPv4 is stored as ::ffff:a.b.c.d (RFC 4291 §2.5.5.2).
class IpAddress {
 public:
  IpAddress() = default;
  explicit constexpr IpAddress(const std::array<std::uint8_t, 16>& bytes) noexcept : bytes_(bytes) {}
  [[nodiscard]] static IpAddress v4(std::uint32_t host_order) noexcept;

  // Parses "203.0.113.7", "2001:db8::1" or "::ffff:203.0.113.7". Returns nullopt if the text has a port,
  // brackets or a zone.
  [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text) noexcept;

  [[nodiscard]] bool is_v4() const noexcept;
  [[nodiscard]] const std::array<std::uint8_t, 16>& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string_view view() const noexcept {  // the 16 bytes, for hashing
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  [[nodiscard]] std::string to_string() const;

  // Returns a copy that keeps the first `bits` of the 128 bits. All other bits are zero.
  [[nodiscard]] IpAddress masked(int bits) const noexcept;

  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  std::array<std::uint8_t, 16> bytes_{};
};

// A block of addresses: "10.0.0.0/8", "2001:db8::/32", or one address.
class Cidr {
 public:
  // Returns nullopt if a bit after the prefix is set: "10.0.0.1/8" is usually a mistake.
  [[nodiscard]] static std::optional<Cidr> parse(std::string_view text) noexcept;
  [[nodiscard]] bool contains(const IpAddress& ip) const noexcept { return ip.masked(bits_) == base_; }
  // Returns true if this block contains every address of `other`.
  [[nodiscard]] bool contains(const Cidr& other) const noexcept {
    return bits_ <= other.bits_ && contains(other.base_);
  }
  [[nodiscard]] std::string to_string() const;

 private:
  Cidr(IpAddress base, int bits) noexcept : base_(base), bits_(bits) {}
  IpAddress base_;
  int bits_;  // the length of the prefix in bits, 0 to 128
};

}  // namespace weir::base
