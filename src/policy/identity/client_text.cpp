#include "weir/policy/client_text.hpp"

#include "policy/rules/descriptors.hpp"

#include "weir/policy/key_values.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace weir::policy {

namespace {

// The text of a number from 0 to 255: its decimal digits and a dot.
struct DottedOctet {
  std::array<char, 4> text{};
  std::uint8_t size = 0;
};
constexpr std::array<DottedOctet, 256> dotted_octets() {
  std::array<DottedOctet, 256> all;
  for (unsigned octet = 0; octet < all.size(); ++octet) {
    auto& [text, size] = all[octet];
    if (octet >= 100) text[size++] = static_cast<char>('0' + octet / 100);
    if (octet >= 10) text[size++] = static_cast<char>('0' + octet / 10 % 10);
    text[size++] = static_cast<char>('0' + octet % 10);
    text[size++] = '.';
  }
  return all;
}
constexpr auto kDottedOctets = dotted_octets();

// Writes an IPv4 address. Uses a table, because branches on the length of each number would be slow
// (mispredicted). REQUIRES: `at` has space for 16 characters.
char* write_v4(const base::IpAddress& ip, char* at) noexcept {
  for (std::size_t i = 12; i < 16; ++i) {
    const auto& octet = kDottedOctets[ip.bytes()[i]];
    std::memcpy(at, octet.text.data(), octet.text.size());
    at += octet.size;
  }
  return at - 1;
}

// Writes an IPv6 address as in RFC 5952 §4: lower case, no leading zeros, "::" for the longest run of at
// least two zero groups.
char* write_v6(const base::IpAddress& ip, char* at) noexcept {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto group = [&](std::size_t i) { return ip.bytes()[2 * i] * 256U + ip.bytes()[2 * i + 1]; };
  std::size_t longest = 0, size = 1;
  for (std::size_t i = 0, zeros = 0; i < 8; ++i) {
    zeros = group(i) == 0 ? zeros + 1 : 0;
    if (zeros <= size) continue;
    size = zeros;
    longest = i + 1 - zeros;
  }
  for (std::size_t i = 0; i < 8; ++i) {
    if (size > 1 && i == longest) {
      *at++ = ':';
      i += size - 1;
      if (i == 7) *at++ = ':';
      continue;
    }
    if (i > 0) *at++ = ':';
    const unsigned value = group(i);
    for (int shift = value >= 0x1000  ? 12
                     : value >= 0x100 ? 8
                     : value >= 0x10  ? 4
                                      : 0;
         shift >= 0; shift -= 4)
      *at++ = kDigits[value >> shift & 15];
  }
  return at;
}

class Text {
 public:
  explicit Text(std::span<char> room) noexcept : room_(room) {}

  void add(std::string_view text) noexcept {
    for (const char c : text.substr(0, room_.size() - size_))
      room_[size_++] = c >= 0x20 && c < 0x7f ? c : '?';
  }
  // Appends an address. Does not use inet_ntop(), because inet_ntop() is slow, and in a flood of new clients
  // every request needs a text.
  void add(const base::IpAddress& ip) noexcept {
    if (ip.is_v4() && room_.size() - size_ >= 16) {
      size_ = static_cast<std::size_t>(write_v4(ip, room_.data() + size_) - room_.data());
      return;
    }
    std::array<char, 40> text;
    char* const end = ip.is_v4() ? write_v4(ip, text.data()) : write_v6(ip, text.data());
    const auto size = std::min(static_cast<std::size_t>(end - text.data()), room_.size() - size_);
    std::memcpy(room_.data() + size_, text.data(), size);
    size_ += size;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::string_view view() const noexcept { return {room_.data(), size_}; }

 private:
  std::span<char> room_;
  std::size_t size_ = 0;
};

struct Shown {
  std::string_view label;
  std::string_view value;  // empty if the request lacks the value
};

// NOLINTBEGIN(bugprone-branch-clone): the branches differ in their texts

// Returns the label and the value to show. For a header, query parameter, cookie or claim, the label contains
// its name, even if the request lacks the value.
Shown shown(const AttributeRef& attribute, const Request& request) noexcept {
  const auto& client = request.client;
  switch (attribute.kind) {
    case Attribute::Ip:
      return {"", "ip"};
    case Attribute::ApiKey:
      return {"api_key", client.api_key};
    case Attribute::User:
      return {"user:", client.user};
    case Attribute::Org:
      return {"org:", client.org};
    case Attribute::Tier:
      return {"tier:", client.tier};
    case Attribute::Service:
      return {"service:", client.service};
    case Attribute::Device:
      return {"device:", client.device};
    case Attribute::Route:
      return {"route:", request.route};
    case Attribute::Upstream:
      return {"upstream:", request.upstream};
    case Attribute::Host:
      return {"host:", request.host};
    case Attribute::Method:
      return {"method:", request.head->method};
    case Attribute::Path:
      return {"path:", request.path};
    case Attribute::Country:
      return {"country:", client.country};
    case Attribute::City:
      return {"city:", client.city};
    case Attribute::Region:
      return {"region:", client.region};
    case Attribute::Asn:
      return {"asn:", client.asn};
    case Attribute::PathSegment:
      return {"path:", path_segment(request.path, attribute.name)};
    case Attribute::Json:
      return {"json:", attribute.name};
    case Attribute::Form:
      return {"form:", attribute.name};
    case Attribute::CertSubject:
      return {"cert:", client.certificate_subject};
    case Attribute::Header:
      return {"header:", attribute.name};
    case Attribute::Query:
      return {"query:", attribute.name};
    case Attribute::Cookie:
      return {"cookie:", attribute.name};
    case Attribute::Claim:
      return {"claim:", attribute.name};
    case Attribute::Descriptor:
      return {"descriptor:", value_in_descriptors(attribute.name, request)};
    case Attribute::Domain:
      return {"domain:", request.domain};
  }
  return {};
}
// NOLINTEND(bugprone-branch-clone)

void add_part(Text& text, const KeyPart& part, const Request& request) noexcept {
  for (const auto& attribute : part) {
    const auto [label, value] = shown(attribute, request);
    if (value.empty()) continue;
    if (!text.empty()) text.add(" ");
    if (attribute.kind == Attribute::Ip) return text.add(request.client.network);
    text.add(label);
    if (attribute.kind == Attribute::Descriptor) {
      text.add(attribute.name);
      if (is_called_secret(attribute.name)) return;
      text.add(":");
    }
    if (attribute.kind != Attribute::ApiKey) return text.add(value);
    if (!request.client.user.empty()) {
      text.add(" of ");
      text.add(request.client.user);
    }
    return;
  }
  if (!text.empty()) text.add(" ");
  text.add(request.client.network);  // on_missing = "ip": the address replaces the missing part
}

}  // namespace

std::string_view write_client(std::span<char> room, const KeyPattern& key, const Request& request) noexcept {
  Text text(room);
  if (key.empty()) text.add("everybody");
  for (const auto& part : key) add_part(text, part, request);
  return text.view();
}

bool is_readable(const KeyPattern& key) noexcept {
  const auto is_secret = [](const AttributeRef& attribute) {
    switch (attribute.kind) {
      case Attribute::ApiKey:
      case Attribute::Header:
      case Attribute::Query:
      case Attribute::Cookie:
      case Attribute::Claim:
      case Attribute::Json:
      case Attribute::Form:
        return true;
      case Attribute::Descriptor:
        return is_called_secret(attribute.name);
      default:
        return false;
    }
  };
  return std::none_of(key.begin(), key.end(),
                      [&](const KeyPart& part) { return std::any_of(part.begin(), part.end(), is_secret); });
}

}  // namespace weir::policy
