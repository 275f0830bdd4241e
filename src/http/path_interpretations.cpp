#include "weir/http/path_interpretations.hpp"

#include "http/path_style.hpp"

#include "weir/http/percent.hpp"
#include "weir/http/target.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace weir::http {

namespace {

using PathParameters = PathStyle::Parameters;

// The kinds of encoded octets at which a server may split a path. Each kind is one bit of a set.
constexpr unsigned kSlash = 1;
constexpr unsigned kBackslash = 2;

unsigned slash_kind(std::optional<char> octet) noexcept {
  if (octet == '/') return kSlash;
  return octet == '\\' ? kBackslash : 0;
}

// A decoded octet, and the number of characters that encode it in the path.
struct EncodedOctet {
  unsigned char value;
  std::size_t size;
};

// Returns the octet at the front of `rest`, which may be encoded. REQUIRES: `rest` is not empty.
EncodedOctet front_octet(std::string_view rest) noexcept {
  const auto octet = encoded_octet(rest);
  return {static_cast<unsigned char>(octet.value_or(rest.front())), octet ? 3U : 1U};
}

// Returns the ASCII character that "%uXXXX" at the front of `rest` means to the IIS server. Returns nullopt
// if `rest` does not begin in this way.
std::optional<EncodedOctet> wide_octet(std::string_view rest) {
  if (rest.size() < 6 || (rest[1] | 0x20) != 'u') return std::nullopt;
  const auto high = encoded_octet(std::string{'%', rest[2], rest[3]});
  const auto low = encoded_octet(std::string{'%', rest[4], rest[5]});
  if (high != '\0' || !low || static_cast<unsigned char>(*low) >= 0x80) return std::nullopt;
  return EncodedOctet{static_cast<unsigned char>(*low), 6};
}

// Returns the ASCII character that lenient decoders read in an overlong UTF-8 form of two to four octets at
// the front of `rest`. RFC 3629 §3 forbids such forms.
std::optional<EncodedOctet> overlong_octet(std::string_view rest) noexcept {
  const auto lead = front_octet(rest);
  const bool two = lead.value == 0xc0 || lead.value == 0xc1;
  if (!two && lead.value != 0xe0 && lead.value != 0xf0) return std::nullopt;
  std::size_t at = lead.size;
  unsigned high = two ? lead.value & 1U : 0;
  for (int more = two ? 1 : lead.value == 0xe0 ? 2 : 3; more > 0; --more) {
    if (at >= rest.size()) return std::nullopt;
    const auto next = front_octet(rest.substr(at));
    at += next.size;
    if ((next.value & 0xc0U) != 0x80 || high > 1) return std::nullopt;
    if (more == 1) return EncodedOctet{static_cast<unsigned char>(high << 6 | (next.value & 0x3fU)), at};
    high = next.value & 0x3fU;
  }
  return std::nullopt;
}

// Returns the ASCII character at the front of `rest` if its encoding is unusual: only some servers decode it.
std::optional<EncodedOctet> odd_octet(std::string_view rest) {
  if (rest.front() == '%')
    if (const auto wide = wide_octet(rest)) return wide;
  return overlong_octet(rest);
}

// Returns true if some servers read the octet at the front of `rest` differently from the normal form.
bool is_special(std::string_view rest) {
  const char front = rest.front();
  if (front != '%') return static_cast<unsigned char>(front) >= 0xc0 && odd_octet(rest);
  const auto octet = encoded_octet(rest);
  return !octet || *octet == '%' || slash_kind(octet) != 0 || odd_octet(rest);
}

bool has_special(std::string_view raw) {
  for (; !raw.empty(); raw.remove_prefix(1))
    if (is_special(raw)) return true;
  return false;
}

// Returns `text` with %XX in place of each encoding that only some servers decode (see odd_octet()).
std::string without_odd(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  while (!text.empty()) {
    const auto odd = odd_octet(text);
    if (odd)
      out.append({'%', kHex[odd->value >> 4], kHex[odd->value & 15]});
    else
      out.push_back(text.front());
    text.remove_prefix(odd ? odd->size : 1);
  }
  return out;
}

// Returns `text` with each "%25" replaced by '%'. REQUIRES: in `text`, each '%' begins an encoded octet.
std::string decoded_once(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    out.push_back(text.front());
    text.remove_prefix(text.starts_with("%25") ? 3 : 1);
  }
  return out;
}

// Returns `text` with '/' in place of each encoded octet of the given kinds.
std::string with_slashes(std::string_view text, unsigned kinds) {
  std::string out;
  while (!text.empty()) {
    const bool slash = (slash_kind(encoded_octet(text)) & kinds) != 0;
    out.push_back(slash ? '/' : text.front());
    text.remove_prefix(slash ? 3 : 1);
  }
  return out;
}

unsigned slash_kinds(std::string_view text) noexcept {
  unsigned kinds = 0;
  for (; !text.empty(); text.remove_prefix(1)) kinds |= slash_kind(encoded_octet(text));
  return kinds;
}

// Removes the parameters of all segments, because rules compare names without parameters. But keeps the
// parameters of dot segments: a server that does not know parameters reads "..;x" as a name, not as a dot
// segment.
void remove_parameters(std::string& path) {
  std::string names;
  for (std::string_view rest = path; !rest.empty();) {
    const auto segment = rest.substr(0, rest.find('/', 1));  // the segment, with the slash before it
    const auto name = segment.substr(0, segment.find(';'));
    names += name == "/." || name == "/.." ? segment : name;
    rest.remove_prefix(segment.size());
  }
  const auto doubled = [](char a, char b) { return a == '/' && b == '/'; };
  names.erase(std::unique(names.begin(), names.end(), doubled), names.end());
  path = std::move(names);
}

// Returns true if any decoder could find a ';' in the text.
bool may_have_parameters(std::string_view text) noexcept {
  return text.find(';') != std::string_view::npos || text.find("%3") != std::string_view::npos ||
         text.find("%25") != std::string_view::npos;
}

class Finder {
 public:
  Finder(std::string_view raw, std::string_view normal, PathInterpretations& interpretations)
      : raw_(raw), normal_(normal), interpretations_(interpretations) {}

  void find() {
    read_in_all_styles(raw_);
    if (const auto usual = without_odd(raw_); usual != raw_) read_in_all_styles(usual);
    if (interpretations_.others.size() > kMostPathInterpretations) interpretations_.too_many = true;
    if (interpretations_.too_many) interpretations_.others.clear();
  }

 private:
  void read_in_all_styles(std::string_view text) {
    const auto spelling = path_spelling(text);
    const bool parameters = may_have_parameters(text);
    for (const auto dropped : {PathParameters::All, PathParameters::Plain, PathParameters::None})
      for (const bool merge_first : {true, false}) {
        if (!parameters && dropped != PathParameters::All) return;
        const PathStyle style{dropped, merge_first};
        read(text, style);
        read_decoded(spelling, style);
        if (!has_room_for(text.size())) return;
        write_path(text, style, once_);
        read(once_, style);
        read_decoded(once_, style);
      }
  }

  // Adds the interpretation of servers that decode percent-encoding once more than others.
  void read_decoded(std::string_view text, PathStyle style) {
    if (interpretations_.too_many) return;
    if (const auto decoded = decoded_once(text); decoded != text) read(decoded, style);
  }

  void read(std::string_view text, PathStyle style) {
    if (interpretations_.too_many) return;
    const unsigned found = slash_kinds(text);
    for (unsigned kinds = 0; kinds <= (kSlash | kBackslash); ++kinds)
      if ((kinds & ~found) == 0 && has_room_for(text.size())) {
        write_path(with_slashes(text, kinds), style, path_);
        add();
      }
  }

  bool has_room_for(std::size_t size) noexcept {
    written_ += size;
    interpretations_.too_many = interpretations_.too_many || written_ > kMostReadOctets;
    return !interpretations_.too_many;
  }

  void add() {
    remove_parameters(path_);
    auto& others = interpretations_.others;
    if (path_ != normal_ && std::find(others.begin(), others.end(), path_) == others.end())
      others.push_back(path_);
  }

  std::string_view raw_;
  std::string_view normal_;
  PathInterpretations& interpretations_;
  std::string path_;
  std::string once_;
  std::size_t written_ = 0;
};

}  // namespace

bool find_path_interpretations(std::string_view raw, std::string_view normal,
                               PathInterpretations& interpretations) {
  if (!raw.starts_with('/')) return false;
  if (normal.data() == raw.data() && raw.find('%') == std::string_view::npos) return false;
  const bool equal = path_warning(raw) != nullptr;
  if (!equal && !has_special(raw)) return false;
  interpretations.others.clear();
  interpretations.equal = equal;
  interpretations.too_many = false;
  Finder(raw, normal, interpretations).find();
  return interpretations.too_many || !interpretations.others.empty();
}

}  // namespace weir::http
