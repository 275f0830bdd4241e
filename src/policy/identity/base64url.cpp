#include "policy/identity/base64url.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::policy {

namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::int8_t kNone = -1;

constexpr auto kValues = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(kNone);
  for (std::size_t i = 0; i < kLetters.size(); ++i)
    values[static_cast<unsigned char>(kLetters[i])] = static_cast<std::int8_t>(i);
  return values;
}();

}  // namespace

std::optional<std::string> decode_base64url(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string octets;
  octets.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  unsigned held = 0;  // number of bits in `bits` that do not form a whole octet yet
  for (const char c : text) {
    const auto value = kValues[static_cast<unsigned char>(c)];
    if (value == kNone) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xffffU;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    octets += static_cast<char>(bits >> held & 0xffU);
  }
  if ((bits & ((1U << held) - 1)) != 0) return std::nullopt;
  return octets;
}

}  // namespace weir::policy
