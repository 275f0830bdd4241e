#include "weir/policy/octet_text.hpp"

#include "weir/base/utf8.hpp"
#include "weir/http/percent.hpp"

#include <algorithm>

namespace weir::policy {

std::string octet_text(std::string_view octets) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string text;
  while (!octets.empty()) {
    const auto length = base::first_utf8(octets).length;
    if (length == 0 || http::encoded_octet(octets)) {
      const auto octet = static_cast<unsigned char>(octets.front());
      text.append(1, '%').append(1, kHex[octet >> 4]).append(1, kHex[octet & 15]);
    } else {
      text += octets.substr(0, length);
    }
    octets.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

std::string octets_of(std::string_view text) {
  std::string scratch;
  return std::string(http::percent_decoded(text, scratch));
}

}  // namespace weir::policy
