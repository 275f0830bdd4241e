#include "weir/http/cors.hpp"

#include "http/token.hpp"
#include "http/token_list.hpp"

#include "weir/base/ip_address.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace weir::http {

namespace {

bool is_scheme(std::string_view text) noexcept {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  };
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' &&
         std::all_of(text.begin(), text.end(), good);
}

// Returns true for a host in the form that browsers send: a name in ASCII, or an address, in lower case.
bool is_origin_host(std::string_view text) noexcept {
  const bool bracketed = text.size() > 2 && text.starts_with('[') && text.ends_with(']');
  if (bracketed) text = text.substr(1, text.size() - 2);
  const auto good = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
           (bracketed && c == ':');
  };
  if (text.empty() || !std::all_of(text.begin(), text.end(), good)) return false;
  return !bracketed || (text.find(':') != std::string_view::npos && base::IpAddress::parse(text));
}

bool is_origin_port(std::string_view text) noexcept {
  constexpr std::string_view kHighest = "65535";
  const bool too_high = text.size() > kHighest.size() || (text.size() == kHighest.size() && text > kHighest);
  return !text.empty() && !too_high && text.front() != '0' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  return out;
}

// Removes the path and the scheme's default port, because browsers leave them out of an origin.
std::string as_browsers_write(std::string_view text) {
  const auto begin = text.find("://");
  if (begin != std::string_view::npos) text = text.substr(0, text.find_first_of("/?#", begin + 3));
  const auto origin = in_lower_case(text);
  std::string_view kept = origin;
  const std::string_view port = kept.starts_with("https:") ? ":443" : kept.starts_with("http:") ? ":80" : "";
  if (kept.ends_with(port)) kept.remove_suffix(port.size());
  return std::string(kept);
}

bool is_origin(std::string_view text) noexcept {
  const auto colon = text.find("://");
  if (colon == std::string_view::npos || !is_scheme(text.substr(0, colon))) return false;
  const auto authority = text.substr(colon + 3);
  const auto end =
      authority.starts_with('[') ? authority.find(']') + 1 : std::min(authority.find(':'), authority.size());
  if (end == 0 || !is_origin_host(authority.substr(0, end))) return false;
  return end == authority.size() || (authority[end] == ':' && is_origin_port(authority.substr(end + 1)));
}

std::string_view value_of(const Fields& fields, std::string_view name) noexcept {
  const auto* field = find_field(fields, name);
  return field != nullptr ? field->value : std::string_view{};
}

bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_tchar);
}

// Returns true if Access-Control-Request-Method is a token, and if each name in
// Access-Control-Request-Headers is a token. weir copies these names into its answer.
bool names_what_it_asks(const Fields& fields) noexcept {
  bool good = is_token(value_of(fields, "access-control-request-method"));
  for_each_token(value_of(fields, "access-control-request-headers"),
                 [&](std::string_view name) { good = good && is_token(name); });
  return good;
}

// Returns true for response fields that browsers and caches use. The scripts of a page need not read them.
bool is_for_browsers(std::string_view name) noexcept {
  return name.starts_with("Access-Control-") || name == "Vary";
}

// Appends an Access-Control-Expose-Headers line to `lines`. This line names `first`, if not empty, then the
// fields in `lines` that the scripts of a page may read.
void append_names(std::string& lines, std::string_view first) {
  const auto end = lines.size();
  lines += "Access-Control-Expose-Headers: ";
  lines += first;
  bool more = !first.empty();
  for (std::size_t at = 0; at < end; at = lines.find("\r\n", at) + 2) {
    const auto name = lines.substr(at, lines.find(':', at) - at);
    if (is_for_browsers(name)) continue;
    if (more) lines += ", ";
    lines += name;
    more = true;
  }
  lines += "\r\n";
}

}  // namespace

base::Result<std::string> parse_origin(std::string_view text) {
  const auto found = "found \"" + std::string(text) + "\"";
  if (text == "null")
    return base::Error{found +
                       ", which every sandboxed page sends; expected an origin such as "
                       "\"https://app.example.com\""};
  if (is_origin(text) && as_browsers_write(text) == text)
    return base::Result<std::string>(boost::system::in_place_value, text);
  auto better = as_browsers_write(text);
  if (is_origin(better))
    return base::Error{found + ", which no browser sends as an origin; write \"" + better + "\""};
  return base::Error{found + "; expected an origin such as \"https://app.example.com\", or \"*\" for all"};
}

std::string_view permitted_origin(const CorsSettings& cors, const Fields& request) noexcept {
  const auto origin = value_of(request, "origin");
  const bool permitted =
      cors.any_origin || std::find(cors.origins.begin(), cors.origins.end(), origin) != cors.origins.end();
  return permitted ? origin : std::string_view{};
}

bool is_preflight(const CorsSettings& cors, const RequestHead& request) noexcept {
  // The last three fields override the method in many server frameworks. So an OPTIONS request with one of
  // them need not be a preflight.
  constexpr std::string_view kNever[] = {"authorization", "cookie", "x-http-method-override", "x-http-method",
                                         "x-method-override"};
  const auto& fields = request.fields;
  const auto has = [&](std::string_view name) { return find_field(fields, name) != nullptr; };
  return request.method == "OPTIONS" && request.framing == Framing::None && names_what_it_asks(fields) &&
         std::none_of(std::begin(kNever), std::end(kNever), has) &&
         (cors.key_field.empty() || !has(cors.key_field)) && !permitted_origin(cors, fields).empty();
}

void append_cors_fields(std::string& lines, const CorsSettings& cors, const Fields& request) {
  const auto origin = permitted_origin(cors, request);
  const bool same_for_all = cors.any_origin && !cors.credentials;
  if (same_for_all || !origin.empty()) {
    append_names(lines, "X-Request-ID");
    lines += "Access-Control-Allow-Origin: ";
    lines += same_for_all ? "*" : origin;
    lines += "\r\n";
    if (cors.credentials) lines += "Access-Control-Allow-Credentials: true\r\n";
  }
  if (!same_for_all) lines += "Vary: Origin\r\n";
}

void append_preflight_fields(std::string& lines, const CorsSettings& cors, const RequestHead& request) {
  lines += "Access-Control-Allow-Methods: ";
  lines += value_of(request.fields, "access-control-request-method");
  if (const auto names = value_of(request.fields, "access-control-request-headers"); !names.empty()) {
    lines += "\r\nAccess-Control-Allow-Headers: ";
    lines += names;
  }
  lines += "\r\nAccess-Control-Max-Age: ";
  lines += std::to_string(std::chrono::floor<std::chrono::seconds>(cors.max_age).count());
  lines += "\r\nVary: Access-Control-Request-Method, Access-Control-Request-Headers\r\n";
}

void append_exposed_names(std::string& lines, const CorsSettings& cors, const Fields& request) {
  if (lines.empty()) return;
  if (cors.any_origin || !permitted_origin(cors, request).empty()) append_names(lines, {});
  if (!cors.any_origin) lines += "Vary: Origin\r\n";
}

}  // namespace weir::http
