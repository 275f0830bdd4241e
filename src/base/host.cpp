#include "weir/base/host.hpp"

#include "weir/base/ip_address.hpp"

#include <algorithm>

namespace weir::base {

namespace {

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

bool is_hex_digit(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_number(std::string_view label) noexcept {
  if (label.starts_with("0x") || label.starts_with("0X"))
    return std::all_of(label.begin() + 2, label.end(), is_hex_digit);
  return !label.empty() && std::all_of(label.begin(), label.end(), is_digit);
}

}  // namespace

bool is_false_ipv4(std::string_view host) noexcept {
  const auto name = host.substr(0, host.size() - (host.ends_with('.') ? 1 : 0));
  return is_number(name.substr(name.rfind('.') + 1)) && !IpAddress::parse(host);
}

}  // namespace weir::base
