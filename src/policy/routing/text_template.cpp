#include "weir/policy/routing/text_template.hpp"

#include "policy/routing/braces.hpp"

#include <algorithm>
#include <array>

namespace weir::policy {

namespace {

constexpr std::array<std::string_view, 13> kPlaceholderNames = {
    "{host}", "{uri}",  "{path}",    "{query}",      "{method}",       "{client_ip}", "{user}",
    "{org}",  "{tier}", "{service}", "{request_id}", "{cert_subject}", "{cert_der}"};

constexpr std::array<bool, 256> plain_octets(std::string_view marks) {
  std::array<bool, 256> set{};
  for (unsigned char c = '0'; c <= '9'; ++c) set[c] = true;
  for (unsigned char c = 'a'; c <= 'z'; ++c) set[c] = set[c - 'a' + 'A'] = true;
  for (const char c : marks) set[static_cast<unsigned char>(c)] = true;
  return set;
}

// The octets that are not percent-encoded. kTarget…: in parts of the request's target, which are already
// percent-encoded. kText…: in all other values. RFC 3986 §2 lists the characters of URLs.
constexpr auto kTargetInField = plain_octets("!#$%&'()*+-./:;<=>?@[]^_`{|}~");
constexpr auto kTextInField = plain_octets("!#$&'()*+-./:<=>?@[]^_`{|}~");
constexpr auto kTargetInUrl = plain_octets("!$%&'()*+,-./:;=?@[]_~");
constexpr auto kTextInUrl = plain_octets("-._~");

void append_encoded(std::string& out, std::string_view value, const std::array<bool, 256>& plain) {
  constexpr char kHex[] = "0123456789ABCDEF";
  const auto is_plain = [&](char c) { return plain[static_cast<unsigned char>(c)]; };
  for (auto rest = value; !rest.empty();) {
    const auto end = std::find_if_not(rest.begin(), rest.end(), is_plain);
    const auto size = static_cast<std::size_t>(end - rest.begin());
    out += rest.substr(0, size);
    rest.remove_prefix(size);
    if (rest.empty()) return;
    const auto octet = static_cast<unsigned char>(rest.front());
    out.append({'%', kHex[octet >> 4], kHex[octet & 15]});
    rest.remove_prefix(1);
  }
}

// Returns the path as the client sent it, but with one slash at its beginning, because two slashes would name
// a host in a redirect. Returns "/" for the target "*", which has no path.
std::string_view path_as_sent(const http::RequestHead& head) noexcept {
  const auto first = head.path.find_first_not_of('/');
  if (!head.path.starts_with('/')) return "/";
  return head.path.substr(first == std::string_view::npos ? head.path.size() - 1 : first - 1);
}

void append_target(std::string& out, Placeholder placeholder, const Request& request, Purpose purpose) {
  const auto& plain = purpose == Purpose::Url ? kTargetInUrl : kTargetInField;
  const auto& head = *request.head;
  if (placeholder == Placeholder::Query) return append_encoded(out, head.query, plain);
  const auto normal = request.path.starts_with('/') ? request.path : std::string_view("/");
  append_encoded(out, placeholder == Placeholder::Uri ? path_as_sent(head) : normal, plain);
  if (placeholder != Placeholder::Uri || head.query.empty()) return;
  out += '?';
  append_encoded(out, head.query, plain);
}

std::string_view value_of_client(Placeholder placeholder, const TemplateValues& values) noexcept {
  const auto& client = values.request.client;
  switch (placeholder) {
    case Placeholder::Method:
      return values.request.head->method;
    case Placeholder::User:
      return client.user;
    case Placeholder::Org:
      return client.org;
    case Placeholder::Tier:
      return client.tier;
    case Placeholder::Service:
      return client.service;
    case Placeholder::RequestId:
      return values.request_id;
    case Placeholder::CertSubject:
      return client.certificate_subject;
    case Placeholder::CertDer:
      return client.certificate;
    default:
      return {};
  }
}

void append_value(std::string& out, Placeholder placeholder, const TemplateValues& values, Purpose purpose) {
  switch (placeholder) {
    case Placeholder::Host:  // http::valid_authority() has checked its characters
      if (purpose == Purpose::Field) return append_encoded(out, values.request.host, kTextInField);
      out += values.request.host;
      return;
    case Placeholder::ClientIp:
      if (values.request.client.address != base::IpAddress())
        out += values.request.client.address.to_string();
      return;
    case Placeholder::Uri:
    case Placeholder::Path:
    case Placeholder::Query:
      return append_target(out, placeholder, values.request, purpose);
    default:
      return append_encoded(out, value_of_client(placeholder, values),
                            purpose == Purpose::Url ? kTextInUrl : kTextInField);
  }
}

std::string unknown_placeholder(std::string_view name) {
  std::string what = "{" + std::string(name) + "} is no placeholder; expected one of";
  for (const auto known : kPlaceholderNames) what.append(" ").append(known);
  return what;
}

}  // namespace

base::Result<TextTemplate> TextTemplate::parse(std::string_view text) {
  auto split = split_braces(text);
  if (!split) return split.error();
  TextTemplate parsed;
  parsed.text_ = text;
  for (auto& [constant, name] : *split) {
    auto& piece = parsed.pieces_.emplace_back(Piece{std::move(constant), std::nullopt});
    if (name.empty()) continue;
    const auto found = std::find(kPlaceholderNames.begin(), kPlaceholderNames.end(), "{" + name + "}");
    if (found == kPlaceholderNames.end()) return base::Error{unknown_placeholder(name)};
    piece.placeholder = static_cast<Placeholder>(found - kPlaceholderNames.begin());
  }
  return parsed;
}

void TextTemplate::append(std::string& out, const TemplateValues& values, Purpose purpose) const {
  for (const auto& [text, placeholder] : pieces_) {
    out += text;
    if (placeholder) append_value(out, *placeholder, values, purpose);
  }
}

bool TextTemplate::has(Placeholder placeholder) const noexcept {
  return std::any_of(pieces_.begin(), pieces_.end(),
                     [&](const Piece& piece) { return piece.placeholder == placeholder; });
}

std::string_view name_of(Placeholder placeholder) noexcept {
  return kPlaceholderNames[static_cast<std::size_t>(placeholder)];
}

namespace {

// Returns true for placeholders whose values begin with one slash.
bool begins_with_slash(std::optional<Placeholder> placeholder) noexcept {
  return placeholder == Placeholder::Uri || placeholder == Placeholder::Path;
}

// Returns why the URL has no safe host; empty if its host is safe. `pieces`: a URL that begins with the
// constant text "https://" or "http://". `rest`: the constant text of the first piece after that beginning.
std::string fault_of_authority(const std::vector<TextTemplate::Piece>& pieces, std::string_view rest) {
  std::size_t size = 0;
  for (const auto& piece : pieces) {
    const auto text = &piece == &pieces.front() ? rest : std::string_view(piece.text);
    const auto end = text.find_first_of("/?#");
    size += std::min(end, text.size());
    if (text.substr(0, end).find_first_of("@\\ ") != std::string_view::npos)
      return "its host has a character that browsers read in several ways";
    const bool ends =
        end != std::string_view::npos || begins_with_slash(piece.placeholder) || !piece.placeholder;
    if (ends) return size != 0 ? "" : "it names no host; expected \"https://{host}{uri}\"";
    if (piece.placeholder != Placeholder::Host)
      return std::string(name_of(*piece.placeholder)) +
             " is a part of its host, so that clients could choose where weir sends others; expected "
             "\"https://{host}{uri}\", or a \"/\" before " +
             std::string(name_of(*piece.placeholder));
    ++size;
  }
  return "";
}

}  // namespace

std::string fault_of_location(const TextTemplate& location) {
  const auto& pieces = location.pieces();
  const std::string_view first = pieces.front().text;
  for (const std::string_view scheme : {"https://", "http://"})
    if (first.starts_with(scheme)) return fault_of_authority(pieces, first.substr(scheme.size()));
  const auto next = pieces.front().placeholder;
  if (first.empty() && begins_with_slash(next)) return "";
  const bool rooted = first.starts_with('/');
  if (!rooted) return "it is neither a URL nor a path; expected \"https://{host}{uri}\" or \"/path\"";
  const bool names_host = first.size() == 1 ? next.has_value() : first[1] == '/' || first[1] == '\\';
  if (!names_host) return "";
  return "browsers read \"//\" at its beginning as the name of a host; expected \"https://{host}{uri}\", or "
         "one \"/\" before a name";
}

}  // namespace weir::policy
