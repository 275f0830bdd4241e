#include "policy/identity/embedded_ipv4.hpp"

#include <cstdint>
#include <string_view>

namespace weir::policy {

namespace {

using namespace std::string_view_literals;

// The prefixes of IPv6 blocks. The length of each prefix is a whole number of octets.
constexpr auto kNat64 = "\x00\x64\xff\x9b\x00\x00\x00\x00\x00\x00\x00\x00"sv;
constexpr auto kSiit = "\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00"sv;
constexpr auto kCompatible = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"sv;
constexpr auto kLocalNat64 = "\x00\x64\xff\x9b\x00\x01"sv;
constexpr auto k6to4 = "\x20\x02"sv;
constexpr auto kTeredo = "\x20\x01\x00\x00"sv;

base::IpAddress ipv4_at(const base::IpAddress& address, std::size_t at, std::uint32_t flipped = 0) noexcept {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | address.bytes()[at + i];
  return base::IpAddress::v4(number ^ flipped);
}

}  // namespace

std::optional<base::IpAddress> embedded_ipv4(const base::IpAddress& address) noexcept {
  const auto octets = address.view();
  if (octets.starts_with(kNat64) || octets.starts_with(kSiit)) return ipv4_at(address, 12);
  if (octets.starts_with(k6to4)) return ipv4_at(address, 2);
  if (octets.starts_with(kTeredo))
    return ipv4_at(address, 12, 0xFFFFFFFF);  // Teredo stores the IPv4 address with all bits inverted
  return std::nullopt;
}

bool is_single_host(const base::IpAddress& address) noexcept {
  const auto& octets = address.bytes();
  const bool link_local = octets[0] == 0xFE && (octets[1] & 0xC0U) == 0x80;
  return link_local || address.view().starts_with(kLocalNat64) || address.view().starts_with(kCompatible);
}

}  // namespace weir::policy
