#include "weir/http/rejected_head.hpp"

#include "weir/http/head.hpp"

#include <algorithm>

namespace weir::http {

namespace {

bool is_method_character(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

std::string_view without_margins(std::string_view text) noexcept {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Returns the target in `rest`, which is the request line without its method. `rest` may lack a version.
std::string_view target_in(std::string_view rest) noexcept {
  const auto version = rest.rfind(" HTTP/");
  return without_margins(version == std::string_view::npos ? rest : rest.substr(0, version));
}

// Returns the value of the first Host line. Ignores the last line if it has no end, because it may be
// incomplete.
std::string_view host_in(std::string_view lines) noexcept {
  constexpr std::string_view kName = "Host:";
  for (auto end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
    const auto line = lines.substr(0, end);
    if (equal_ignoring_case(line.substr(0, kName.size()), kName))
      return without_margins(line.substr(kName.size()));
    lines.remove_prefix(end + 1);
  }
  return {};
}

// Returns the authority of `target` if the target is a URL. Returns the whole `target` if it is an authority
// with a user, such as "user:secret@host:443". Otherwise returns an empty text.
std::string_view authority_in(std::string_view target) noexcept {
  const bool has_scheme = target.substr(0, target.find_first_of("/?")).ends_with(':');
  const auto scheme = has_scheme ? target.find("://") : std::string_view::npos;
  const auto rest = scheme == std::string_view::npos ? target : target.substr(scheme + 3);
  const auto authority = rest.substr(0, rest.find_first_of("/?#"));
  return scheme != std::string_view::npos || authority.find('@') != std::string_view::npos
             ? authority
             : std::string_view{};
}

// Returns the authority without user name and password (RFC 3986 §3.2.1), which must not appear in a log.
std::string_view without_userinfo(std::string_view authority) noexcept {
  const auto at = authority.rfind('@');
  return at == std::string_view::npos ? authority : authority.substr(at + 1);
}

}  // namespace

RejectedHead read_rejected_head(std::string_view bytes) {
  RejectedHead head;
  const auto line = bytes.substr(0, bytes.find_first_of("\r\n"));
  const auto end = std::find_if_not(line.begin(), line.end(), is_method_character);
  if (end == line.begin() || (end != line.end() && *end != ' ')) return head;
  head.method = line.substr(0, static_cast<std::size_t>(end - line.begin()));
  const auto target = target_in(line.substr(head.method.size()));
  head.target = target;
  head.host = without_userinfo(host_in(bytes.substr(std::min(bytes.size(), line.size()))));
  const auto authority = authority_in(target);
  if (authority.empty()) return head;
  head.host = without_userinfo(authority);
  const auto userinfo = authority.size() - head.host.size();  // size of user name and password, with the '@'
  if (userinfo > 1)
    head.target.replace(static_cast<std::size_t>(authority.data() - target.data()), userinfo - 1, "***");
  return head;
}

}  // namespace weir::http
