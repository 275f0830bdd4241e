#include "weir/http/target.hpp"

#include "http/path_style.hpp"

#include "weir/http/percent.hpp"

#include <algorithm>
#include <array>

#include <arpa/inet.h>

namespace weir::http {

namespace {

bool is_upper(char c) noexcept {
  return c >= 'A' && c <= 'Z';
}

char lower(char c) noexcept {
  return is_upper(c) ? static_cast<char>(c + ('a' - 'A')) : c;
}

// Marks the octets of pchar (RFC 3986 §3.3) without "%": unreserved / sub-delims / ":" / "@".
constexpr std::array<bool, 256> kPathCharacters = [] {
  std::array<bool, 256> characters{};
  for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
                                       "!$&'()*+,;=:@"))
    characters[static_cast<unsigned char>(c)] = true;
  return characters;
}();

bool is_path_character(char c) noexcept {
  return kPathCharacters[static_cast<unsigned char>(c)];
}

// The kinds of octets that is_suspicious() distinguishes in a path.
enum class PathOctet : unsigned char {
  Plain,
  Dot,
  Slash,
  Special,  // ';' (begins parameters), or an octet that may be written differently in the normal form
};

constexpr std::array<PathOctet, 256> kPathOctets = [] {
  std::array<PathOctet, 256> octets{};
  for (std::size_t c = 0; c < octets.size(); ++c)
    octets[c] = kPathCharacters[c] ? PathOctet::Plain : PathOctet::Special;
  octets[';'] = PathOctet::Special;
  octets['.'] = PathOctet::Dot;
  octets['/'] = PathOctet::Slash;
  return octets;
}();

// Returns true if the path may differ from its normal form. Also true for some normal paths ("/.well-known").
bool is_suspicious(std::string_view path) noexcept {
  bool after_slash = false;
  for (const char c : path) {
    const auto octet = kPathOctets[static_cast<unsigned char>(c)];
    if (octet == PathOctet::Plain) {
      after_slash = false;
      continue;
    }
    if (octet == PathOctet::Special || after_slash) return true;
    after_slash = octet == PathOctet::Slash;
  }
  return false;
}

// Removes one octet, which may be encoded, from the front of `rest` and returns it. REQUIRES: `rest` is not
// empty.
char take_octet(std::string_view& rest) noexcept {
  const auto octet = encoded_octet(rest);
  const char c = octet ? *octet : rest.front();
  rest.remove_prefix(octet ? 3 : 1);
  return c;
}

// Appends the octet in normal form: a path character as itself, any other octet as %XX.
void append_octet(std::string& out, char octet) {
  constexpr char kHex[] = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(octet);
  if (is_path_character(octet))
    out.push_back(octet);
  else
    out.append({'%', kHex[value >> 4], kHex[value & 15]});
}

// Removes the first segment, without its slash, from the front of `rest`. Appends the segment's name to
// `out`, and also its parameters unless the style drops them.
void take_name(std::string_view& rest, std::string& out, PathStyle style) {
  using Parameters = PathStyle::Parameters;
  auto segment = rest.substr(0, rest.find('/'));
  rest.remove_prefix(segment.size());
  while (!segment.empty()) {
    const bool plain = segment.front() == ';';
    const char octet = take_octet(segment);
    const bool begins = style.dropped == Parameters::All || (style.dropped == Parameters::Plain && plain);
    if (octet == ';' && begins) return;
    append_octet(out, octet);
  }
}

// Moves one segment and its slash from `rest` to `out`. For a dot segment, moves nothing, but removes the
// segments of `out` that it cancels. `out` must end with a slash. Afterwards `out` ends with a slash again,
// unless it ends with the name of the path's last segment.
void take_segment(std::string_view& rest, std::string& out, PathStyle style) {
  const std::size_t begin = out.size();
  take_name(rest, out, style);
  const bool last = rest.empty();
  if (!last) rest.remove_prefix(1);

  const auto segment = std::string_view(out).substr(begin);
  if (segment == "..") {
    out.resize(begin > 1 ? out.rfind('/', begin - 2) + 1 : 1);
  } else if (segment == "." || (segment.empty() && (last || style.merge_first))) {
    out.resize(begin);
  } else if (!last) {
    out.push_back('/');
  }
}

// The properties of a path segment that matter when dot segments are removed, and on which servers may
// disagree.
struct Segment {
  std::size_t dots = 0;  // for a dot segment: its number of dots, 1 or 2; otherwise 0
  bool empty = true;     // true: the name is empty
  bool parameters = false;
  bool encoded_slash = false;  // true: the name contains an encoded slash (is_encoded_slash())
  // True: the parameters contain an encoded slash. Rules do not see parameters.
  bool hides_slash = false;
  // true: the name has a part "." or ".." if it is split at its encoded slashes
  bool dots_and_slashes = false;
};

// Returns true if some servers may interpret this octet, decoded by take_octet(), as a slash. Such servers
// decode a path before they split it, or decode twice, or split paths at backslashes.
bool is_encoded_slash(char octet) noexcept {
  return octet == '/' || octet == '\\' || octet == '%';
}

// Returns true if `text`, the parameters of a segment, contains an encoded slash.
bool has_encoded_slash(std::string_view text) noexcept {
  while (!text.empty())
    if (is_encoded_slash(take_octet(text))) return true;
  return false;
}

Segment read_segment(std::string_view text) noexcept {
  Segment segment;
  std::size_t dots = 0;  // the dots since the last encoded slash
  bool named = false;    // true: the last encoded slash is followed by characters other than dots
  const auto end_part = [&] {
    segment.dots_and_slashes = segment.dots_and_slashes || (!named && (dots == 1 || dots == 2));
  };
  while (!text.empty()) {
    const char octet = take_octet(text);
    segment.parameters = octet == ';';
    if (segment.parameters) break;
    segment.empty = false;
    if (is_encoded_slash(octet)) {
      end_part();
      segment.encoded_slash = true;
      dots = 0;
      named = false;
    } else if (octet == '.') {
      ++dots;
    } else {
      named = true;
    }
  }
  end_part();
  segment.hides_slash = has_encoded_slash(text);
  if (segment.encoded_slash) return segment;
  segment.dots = segment.dots_and_slashes ? dots : 0;
  segment.dots_and_slashes = false;
  return segment;
}

// The stack of the path's names. Each ".." segment removes the last name.
class Names {
 public:
  void add(const Segment& segment) noexcept {
    ++count_;
    if (segment.encoded_slash) with_slash_ = count_;
  }

  // Removes the last name, if any. Returns true if that name had an encoded slash.
  bool remove() noexcept {
    if (count_ == 0) return false;
    return count_-- == with_slash_;
  }

 private:
  std::size_t count_ = 0;
  std::size_t with_slash_ = 0;  // position of the last name with an encoded slash
};

constexpr const char* kDoubtfulDots = "the dot segments of the path are ambiguous";
constexpr const char* kDoubtfulSlash =
    "the path has an encoded slash, backslash or percent sign next to dots, in parameters or in a part that "
    "dots remove";

// Returns a reason if servers may find different resources for this path, because they differ in whether they
// merge slashes, know parameters or decode slashes. Rules see only one path. Returns null if all servers
// agree.
const char* warn_about_segments(std::string_view path) noexcept {
  Names names;
  bool named = false;  // true: some segment has a name
  bool hole = false;   // true: an empty segment follows a name
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto text = path.substr(0, path.find('/'));
    path.remove_prefix(text.size());
    const auto segment = read_segment(text);
    if (segment.dots != 0 && segment.parameters) return kDoubtfulDots;
    if (segment.dots == 2 && hole) return kDoubtfulDots;
    if (segment.hides_slash || segment.dots_and_slashes) return kDoubtfulSlash;
    if (segment.dots == 2 && names.remove()) return kDoubtfulSlash;
    hole = hole || (named && segment.empty);
    const bool name = !segment.empty && segment.dots == 0;
    if (name) names.add(segment);
    named = named || name;
  }
  return nullptr;
}

}  // namespace

const char* path_fault(std::string_view raw) noexcept {
  if (raw.find('\\') != std::string_view::npos) return "the request target must not contain a backslash";
  if (raw.find("%00") != std::string_view::npos) return "the path must not contain a NUL byte";
  return nullptr;
}

const char* path_warning(std::string_view raw) noexcept {
  if (!raw.starts_with('/') || !is_suspicious(raw)) return nullptr;
  const auto* fault = path_fault(raw);
  return fault != nullptr ? fault : warn_about_segments(raw);
}

bool is_plain_path(std::string_view raw) noexcept {
  return raw.starts_with('/') && !is_suspicious(raw);
}

std::string path_spelling(std::string_view raw) {
  std::string out;
  while (!raw.empty()) {
    const bool slash = raw.front() == '/';
    const char octet = take_octet(raw);
    if (slash)
      out.push_back('/');
    else
      append_octet(out, octet);
  }
  return out;
}

std::string_view normalise_path(std::string_view raw, std::string& scratch) {
  raw = raw.substr(0, raw.find('#'));
  if (raw.empty()) return "/";
  if (raw.front() != '/' || !is_suspicious(raw)) return raw;
  write_path(raw, {}, scratch);
  return scratch == raw ? raw : std::string_view(scratch);
}

void write_path(std::string_view raw, PathStyle style, std::string& out) {
  out.assign(1, '/');
  for (auto rest = raw.substr(1); !rest.empty();) take_segment(rest, out, style);
  if (style.merge_first) return;
  const auto doubled = [](char a, char b) { return a == '/' && b == '/'; };
  out.erase(std::unique(out.begin(), out.end(), doubled), out.end());
}

namespace {

// Returns the usual spelling (RFC 5952) of an IPv6 literal, which can be spelled in many ways. Returns an
// empty text if the literal is invalid.
std::string_view normalise_literal(std::string_view host, std::string& scratch) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  in6_addr address{};
  const auto inner = host.substr(1, host.size() - 2);
  if (inner.size() >= text.size()) return {};
  std::copy(inner.begin(), inner.end(), text.begin());
  if (::inet_pton(AF_INET6, text.data(), &address) != 1) return {};
  if (::inet_ntop(AF_INET6, &address, text.data(), text.size()) == nullptr) return {};
  scratch.assign(1, '[').append(text.data()).append(1, ']');
  return scratch;
}

}  // namespace

std::string_view normalise_host(std::string_view authority, std::string& scratch) {
  std::string_view host = authority;
  if (host.starts_with('[')) {
    const auto bracket = host.find(']');
    if (bracket != std::string_view::npos) host = host.substr(0, bracket + 1);
    if (const auto literal = normalise_literal(host, scratch); host.ends_with(']') && !literal.empty())
      return literal;
  } else {
    host = host.substr(0, host.find(':'));
    if (host.ends_with('.')) host.remove_suffix(1);
  }
  if (std::none_of(host.begin(), host.end(), is_upper)) return host;
  scratch.resize(host.size());
  std::transform(host.begin(), host.end(), scratch.begin(), lower);
  return scratch;
}

}  // namespace weir::http
