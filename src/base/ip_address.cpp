#include "weir/base/ip_address.hpp"

#include <charconv>
#include <cstring>

#include <arpa/inet.h>

namespace weir::base {

namespace {
constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
}

IpAddress IpAddress::v4(std::uint32_t host_order) noexcept {
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), kMapped.data(), kMapped.size());
  for (int i = 0; i < 4; ++i) bytes[12 + i] = static_cast<std::uint8_t>(host_order >> (24 - 8 * i));
  return IpAddress(bytes);
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) noexcept {
  std::array<char, INET6_ADDRSTRLEN + 1> terminated{};
  if (text.empty() || text.size() >= terminated.size()) return std::nullopt;
  if (text.find('\0') != std::string_view::npos)
    return std::nullopt;  // inet_pton would ignore the octets after the NUL
  std::memcpy(terminated.data(), text.data(), text.size());
  in_addr four{};
  if (inet_pton(AF_INET, terminated.data(), &four) == 1) return v4(ntohl(four.s_addr));
  std::array<std::uint8_t, 16> bytes{};
  if (inet_pton(AF_INET6, terminated.data(), bytes.data()) == 1) return IpAddress(bytes);
  return std::nullopt;
}

bool IpAddress::is_v4() const noexcept {
  return std::memcmp(bytes_.data(), kMapped.data(), kMapped.size()) == 0;
}

std::string IpAddress::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_v4())
    inet_ntop(AF_INET, bytes_.data() + 12, text.data(), text.size());
  else
    inet_ntop(AF_INET6, bytes_.data(), text.data(), text.size());
  return text.data();
}

IpAddress IpAddress::masked(int bits) const noexcept {
  IpAddress out = *this;
  for (int i = 0; i < 16; ++i) {
    const int keep = bits - 8 * i;
    if (keep <= 0)
      out.bytes_[i] = 0;
    else if (keep < 8)
      out.bytes_[i] &= static_cast<std::uint8_t>(0xff << (8 - keep));
  }
  return out;
}

std::optional<Cidr> Cidr::parse(std::string_view text) noexcept {
  const auto slash = text.find('/');
  const auto ip = IpAddress::parse(text.substr(0, slash));
  if (!ip) return std::nullopt;
  // The prefix length is at most 32 for the dotted form of an IPv4 address. For an IPv4-mapped block
  // ("::ffff:10.0.0.0/104"), it counts all 128 bits (RFC 4291 §2.3).
  const int width = text.substr(0, slash).find(':') == std::string_view::npos ? 32 : 128;
  int bits = width;
  if (slash != std::string_view::npos) {
    const auto digits = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  }
  if (bits < 0 || bits > width) return std::nullopt;
  const int of_128 = bits + (128 - width);
  if (ip->masked(of_128) != *ip) return std::nullopt;
  return Cidr(*ip, of_128);
}

std::string Cidr::to_string() const {
  return base_.to_string() + "/" + std::to_string(base_.is_v4() ? bits_ - 96 : bits_);
}

}  // namespace weir::base
