#include "weir/http/proxy_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::http {

using namespace std::string_view_literals;

namespace {

using Status = ProxyHeader::Status;

constexpr auto kSignature = "\r\n\r\n\0\r\nQUIT\n"sv;
constexpr auto kWord = "PROXY "sv;
constexpr std::size_t kMaxLine = 107;  // the longest line of version 1, with its CRLF
constexpr std::size_t kFixed = 16;     // bytes of a version 2 header before the addresses
constexpr std::size_t kV4 = 12;        // bytes of two IPv4 addresses and two ports
constexpr std::size_t kV6 = 36;
constexpr ProxyHeader kBad{Status::Bad, 0, std::nullopt};
constexpr ProxyHeader kNeedMore{};

unsigned octet(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<unsigned char>(bytes[at]);
}

std::uint16_t port_at(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<std::uint16_t>(octet(bytes, at) << 8 | octet(bytes, at + 1));
}

// Removes the next word and the blank after it from `rest`. Returns the word.
std::string_view take_word(std::string_view& rest) noexcept {
  const auto word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  return word;
}

std::optional<base::IpAddress> read_address(std::string_view text, bool v6) noexcept {
  const bool written_so = (text.find(':') != std::string_view::npos) == v6;
  return written_so ? base::IpAddress::parse(text) : std::nullopt;
}

std::optional<std::uint16_t> read_port(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  const bool zero_led = text.size() > 1 && text.front() == '0';
  if (error != std::errc{} || stop != end || zero_led) return std::nullopt;
  return port;
}

// Parses the text of a version 1 header between "PROXY " and the end of the line.
ProxyHeader read_line(std::string_view rest, std::size_t size) noexcept {
  if (rest == "UNKNOWN" || rest.starts_with("UNKNOWN ")) return {Status::Whole, size, std::nullopt};
  const auto family = take_word(rest);
  if (family != "TCP4" && family != "TCP6") return kBad;
  const bool v6 = family == "TCP6";
  const auto source = read_address(take_word(rest), v6);
  const auto destination = read_address(take_word(rest), v6);
  const auto source_port = read_port(take_word(rest));
  const auto destination_port = read_port(rest);
  if (!source || !destination || !source_port || !destination_port) return kBad;
  return {Status::Whole, size, ConnectionEnds{*source, *destination, *source_port, *destination_port}};
}

ProxyHeader read_first(std::string_view bytes) noexcept {
  const auto line = bytes.substr(0, std::min(bytes.size(), kMaxLine));
  const auto end = line.find('\r');
  const bool foreign = std::any_of(line.begin(), line.begin() + std::min(end, line.size()), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e;
  });
  if (foreign) return kBad;
  if (end == std::string_view::npos || end + 1 == line.size())
    return line.size() < kMaxLine ? kNeedMore : kBad;
  if (line[end + 1] != '\n') return kBad;
  return read_line(line.substr(kWord.size(), end - kWord.size()), end + 2);
}

base::IpAddress v6_at(std::string_view bytes, std::size_t at) noexcept {
  std::array<std::uint8_t, 16> octets{};
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), octets.size(), octets.begin());
  return base::IpAddress(octets);
}

base::IpAddress v4_at(std::string_view bytes, std::size_t at) noexcept {
  return base::IpAddress::v4(std::uint32_t{octet(bytes, at)} << 24 | octet(bytes, at + 1) << 16 |
                             octet(bytes, at + 2) << 8 | octet(bytes, at + 3));
}

// Reads the addresses of a version 2 header. `body`: the header from its addresses on. Sets `ends` only for
// IP families. Returns false if the body is invalid.
bool read_ends(unsigned family, std::string_view body, std::optional<ConnectionEnds>& ends) noexcept {
  if ((family >> 4) > 3 || (family & 15U) > 2) return false;  // reserved families or protocols
  if (family == 0x11) {
    if (body.size() < kV4) return false;
    ends = {v4_at(body, 0), v4_at(body, 4), port_at(body, 8), port_at(body, 10)};
  } else if (family == 0x21) {
    if (body.size() < kV6) return false;
    ends = {v6_at(body, 0), v6_at(body, 16), port_at(body, 32), port_at(body, 34)};
  }
  return true;
}

ProxyHeader read_second(std::string_view bytes) noexcept {
  if (bytes.size() > 12 && octet(bytes, 12) != 0x20 && octet(bytes, 12) != 0x21) return kBad;
  if (bytes.size() < kFixed) return kNeedMore;
  const std::size_t size = kFixed + port_at(bytes, 14);
  if (size > kMaxProxyHeader) return kBad;
  if (bytes.size() < size) return kNeedMore;
  ProxyHeader whole{Status::Whole, size, std::nullopt};
  const bool local = octet(bytes, 12) == 0x20;
  if (!local && !read_ends(octet(bytes, 13), bytes.substr(kFixed, size - kFixed), whole.ends)) return kBad;
  return whole;
}

bool begins_like(std::string_view bytes, std::string_view known) noexcept {
  const auto common = std::min(bytes.size(), known.size());
  return bytes.substr(0, common) == known.substr(0, common);
}

void append_word(std::string& out, std::size_t word) {
  out.push_back(static_cast<char>(word >> 8 & 255U));
  out.push_back(static_cast<char>(word & 255U));
}

}  // namespace

ProxyHeader read_proxy_header(std::string_view bytes) noexcept {
  if (begins_like(bytes, kWord)) return bytes.size() < kWord.size() ? kNeedMore : read_first(bytes);
  if (begins_like(bytes, kSignature)) return read_second(bytes);
  return kBad;
}

void append_proxy_header(std::string& out, const std::optional<ConnectionEnds>& ends) {
  out += kSignature;
  if (!ends) {
    out.append("\x20\0\0\0"sv);
    return;
  }
  const bool v4 = ends->source.is_v4() && ends->destination.is_v4();
  out.append(v4 ? "\x21\x11"sv : "\x21\x21"sv);
  append_word(out, v4 ? kV4 : kV6);
  for (const auto* address : {&ends->source, &ends->destination}) out += address->view().substr(v4 ? 12 : 0);
  append_word(out, ends->source_port);
  append_word(out, ends->destination_port);
}

}  // namespace weir::http
