#include "redis/cluster/cluster_slots.hpp"

#include <algorithm>
#include <charconv>

namespace weir::redis {

namespace {

// The CRC table for the polynomial x^16 + x^12 + x^5 + 1, highest bit first.
constexpr std::array<std::uint16_t, 256> crc_table() {
  std::array<std::uint16_t, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    unsigned rest = static_cast<unsigned>(i) << 8;
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 0x8000U) != 0 ? (rest << 1) ^ 0x1021U : rest << 1;
    table[i] = static_cast<std::uint16_t>(rest);
  }
  return table;
}

std::uint16_t crc16(std::string_view bytes) noexcept {
  static constexpr auto kTable = crc_table();
  std::uint16_t crc = 0;
  for (const char byte : bytes) {
    const auto index = static_cast<std::uint8_t>(crc >> 8 ^ static_cast<std::uint8_t>(byte));
    crc = static_cast<std::uint16_t>(crc << 8 ^ kTable[index]);
  }
  return crc;
}

std::string_view hashed_part(std::string_view key) noexcept {
  const auto open = key.find('{');
  if (open == std::string_view::npos) return key;
  const auto close = key.find('}', open + 1);
  return close == std::string_view::npos || close == open + 1 ? key : key.substr(open + 1, close - open - 1);
}

// Returns the text before the first character `mark`. Removes the returned text and the mark from the front
// of `text`.
std::string_view take_until(std::string_view& text, char mark) noexcept {
  const auto part = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) noexcept {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::optional<Slot> slot_in(std::string_view text) noexcept {
  const auto slot = number_in<Slot>(text);
  return slot && *slot < kSlots ? slot : std::nullopt;
}

// Parses "host:port". An IPv6 address has no brackets in this text. If the text has no host, the result has
// the host of `asked`.
std::optional<base::Endpoint> address_in(std::string_view text, const base::Endpoint& asked) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = number_in<std::uint16_t>(text.substr(colon + 1));
  if (!port) return std::nullopt;
  const auto host = text.substr(0, colon);
  return base::Endpoint{host.empty() ? asked.host : std::string(host), *port, ""};
}

bool has_flag(std::string_view flags, std::string_view wanted) noexcept {
  while (!flags.empty())
    if (take_until(flags, ',') == wanted) return true;
  return false;
}

}  // namespace

Slot slot_of(std::string_view key) noexcept {
  return crc16(hashed_part(key)) % kSlots;
}

std::optional<SlotMap> SlotMap::read(std::string_view nodes, const base::Endpoint& asked) {
  SlotMap map;
  if (nodes.empty()) return std::nullopt;
  while (!nodes.empty()) {
    auto line = take_until(nodes, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !map.add(line, asked)) return std::nullopt;
  }
  return map;
}

// Parses one line of CLUSTER NODES: id host:port@bus[,name] flags master-id ping pong epoch link slots…
bool SlotMap::add(std::string_view line, const base::Endpoint& asked) {
  (void)take_until(line, ' ');
  auto place = take_until(line, ' ');
  const auto flags = take_until(line, ' ');
  for (int skipped = 0; skipped < 5; ++skipped) {
    if (line.empty()) return false;
    (void)take_until(line, ' ');
  }
  if (!has_flag(flags, "master") || has_flag(flags, "noaddr")) return true;
  auto address = address_in(take_until(place, '@'), asked);
  if (!address || address->port == 0) return false;
  const auto master = static_cast<std::uint16_t>(masters_.size());
  masters_.push_back(*std::move(address));
  while (!line.empty())
    if (!give(take_until(line, ' '), master)) return false;
  return true;
}

// Assigns the slots of a text such as "5" or "0-5460" to a master. Ignores a text in brackets, such as
// "[93->-…]", because it names a slot that is moving. The slot's owner also lists the slot as a number.
bool SlotMap::give(std::string_view range, std::uint16_t master) noexcept {
  if (range.empty() || range.starts_with('[')) return true;
  const auto first = slot_in(take_until(range, '-'));
  const auto last = range.empty() ? first : slot_in(range);
  if (!first || !last || *first > *last) return false;
  std::fill(owners_.begin() + *first, owners_.begin() + *last + 1, master);
  return true;
}

std::size_t SlotMap::served() const noexcept {
  return kSlots - static_cast<std::size_t>(std::count(owners_.begin(), owners_.end(), kNobody));
}

void SlotMap::move(Slot slot, const base::Endpoint& to) {
  const auto found = std::find(masters_.begin(), masters_.end(), to);
  const auto master = static_cast<std::uint16_t>(found - masters_.begin());
  // Changes owners_ only after push_back(), which may throw.
  if (found == masters_.end()) masters_.push_back(to);
  owners_[slot] = master;
}

std::optional<Redirection> redirection_in(std::string_view error, const base::Endpoint& from) {
  const auto word = take_until(error, ' ');
  if (word != "MOVED" && word != "ASK") return std::nullopt;
  const auto slot = slot_in(take_until(error, ' '));
  auto to = address_in(error, from);
  if (!slot || !to || to->port == 0) return std::nullopt;
  const auto kind = word == "ASK" ? Redirection::Kind::Ask : Redirection::Kind::Moved;
  return Redirection{kind, *slot, *std::move(to)};
}

}  // namespace weir::redis
