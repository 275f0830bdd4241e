#include "weir/http/target.hpp"

#include "weir/http/percent.hpp"

#include <algorithm>

namespace weir::http {

namespace {

bool is_upper(char c) noexcept {
  return c >= 'A' && c <= 'Z';
}

char lower(char c) noexcept {
  return is_upper(c) ? static_cast<char>(c + ('a' - 'A')) : c;
}

// RFC 3986 §2.3.
bool is_unreserved(char c) noexcept {
  const char l = lower(c);
  return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
}

// Whether the path may be in need of a change. True for some that turn out to be normal ("/.well-known").
bool is_suspicious(std::string_view path) noexcept {
  char before = '\0';
  for (const char c : path) {
    if (c == '%' || c == ';' || (before == '/' && (c == '/' || c == '.'))) return true;
    before = c;
  }
  return false;
}

// Takes the octet, encoded or not, at the front of `rest` to the end of `out`.
void take_octet(std::string_view& rest, std::string& out) {
  constexpr char kHex[] = "0123456789ABCDEF";
  const auto octet = encoded_octet(rest);
  if (!octet) {
    out.push_back(rest[0]);
    rest.remove_prefix(1);
    return;
  }
  rest.remove_prefix(3);
  const auto value = static_cast<unsigned char>(*octet);
  if (is_unreserved(*octet))
    out.push_back(*octet);
  else
    out.append({'%', kHex[value >> 4], kHex[value & 15]});
}

// Takes one segment and the slash behind it to the end of `out`, which ends with a slash before, and after as
// well unless this was the last segment and a name. A dot segment takes back what it says.
void take_segment(std::string_view& rest, std::string& out) {
  const std::size_t begin = out.size();
  while (!rest.empty() && rest.front() != '/' && rest.front() != ';') take_octet(rest, out);
  const std::size_t slash = rest.find('/');
  const bool last = slash == std::string_view::npos;
  rest.remove_prefix(last ? rest.size() : slash + 1);

  const auto segment = std::string_view(out).substr(begin);
  if (segment == "..") {
    out.resize(begin > 1 ? out.rfind('/', begin - 2) + 1 : 1);
  } else if (segment.empty() || segment == ".") {
    out.resize(begin);
  } else if (!last) {
    out.push_back('/');
  }
}

}  // namespace

std::string_view normalise_path(std::string_view raw, std::string& scratch) {
  raw = raw.substr(0, raw.find('#'));
  if (raw.empty()) return "/";
  if (raw.front() != '/' || !is_suspicious(raw)) return raw;
  scratch.assign(1, '/');
  for (auto rest = raw.substr(1); !rest.empty();) take_segment(rest, scratch);
  return scratch == raw ? raw : std::string_view(scratch);
}

std::string_view normalise_host(std::string_view authority, std::string& scratch) {
  std::string_view host = authority;
  if (host.starts_with('[')) {
    const auto bracket = host.find(']');
    if (bracket != std::string_view::npos) host = host.substr(0, bracket + 1);
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
