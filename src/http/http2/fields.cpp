#include "http/token.hpp"

#include "weir/base/text_writer.hpp"
#include "weir/http/answer.hpp"
#include "weir/http/chunked.hpp"
#include "weir/http/grpc.hpp"
#include "weir/http/http2_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::http {

namespace {

using namespace std::string_view_literals;

char in_lower_case(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Returns true for fields that describe the connection (RFC 9113 §8.2.2).
bool is_about_connection(std::string_view name) noexcept {
  static constexpr std::array kNames{"connection"sv, "keep-alive"sv, "proxy-connection"sv,
                                     "transfer-encoding"sv, "upgrade"sv};
  return std::any_of(kNames.begin(), kNames.end(),
                     [name](std::string_view known) { return equal_ignoring_case(name, known); });
}

bool is_framing(std::string_view name) noexcept {
  return equal_ignoring_case(name, "content-length") || equal_ignoring_case(name, "trailer") ||
         equal_ignoring_case(name, "te") || equal_ignoring_case(name, "host");
}

std::string_view without_blanks(std::string_view value) noexcept {
  while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
  while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
  return value;
}

// Returns true if the lines of a head contain the field Transfer-Encoding. weir uses no coding but "chunked".
bool is_chunked(std::string_view lines) noexcept {
  constexpr std::string_view kName = "transfer-encoding:";
  for (std::size_t at = 0; at < lines.size(); at = std::min(lines.find("\r\n", at), lines.size() - 2) + 2)
    if (equal_ignoring_case(lines.substr(at, kName.size()), kName)) return true;
  return false;
}

// The octets that each field adds to the size of a head, besides its name and value (RFC 9113 §6.5.2).
constexpr std::size_t kFieldOverhead = 32;

void append_line(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

void Http2Fields::clear() noexcept {
  text_.clear();
  ends_.clear();
}

void Http2Fields::add(std::string_view name, std::string_view value) {
  for (const char c : name) text_ += in_lower_case(c);
  ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  text_ += value;
  ends_.push_back(static_cast<std::uint32_t>(text_.size()));
}

void Http2Fields::add_trailers(std::string_view lines) {
  while (!lines.empty()) {
    const auto end = std::min(lines.find("\r\n"), lines.size());
    const auto line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 2, lines.size()));
    const auto name = line.substr(0, line.find(':'));
    const bool valid =
        !name.empty() && name.size() < line.size() && std::all_of(name.begin(), name.end(), is_tchar);
    if (!valid || is_about_connection(name) || is_framing(name)) continue;
    add(name, without_blanks(line.substr(name.size() + 1)));
  }
}

void Http2Fields::add_lines(std::string_view lines) {
  while (!lines.empty()) {
    const auto end = std::min(lines.find("\r\n"), lines.size());
    const auto line = lines.substr(0, end);
    if (line.empty()) return;
    lines.remove_prefix(std::min(end + 2, lines.size()));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || is_about_connection(line.substr(0, colon))) continue;
    add(line.substr(0, colon), without_blanks(line.substr(colon + 1)));
  }
}

void Http2Fields::add_forwarded(const Fields& fields) {
  for (const auto& field : fields)
    if (!field.hop_by_hop && field.id != FieldId::ContentLength && !is_about_connection(field.name))
      add(field.name, field.value);
}

void Http2Fields::add_websocket_response(const Fields& fields) {
  add_status(200);
  for (const auto& field : fields)
    if (!field.hop_by_hop && field.id != FieldId::ContentLength && !is_about_connection(field.name) &&
        !equal_ignoring_case(field.name, "sec-websocket-accept"))
      add(field.name, field.value);
}

void Http2Fields::add_status(unsigned status) {
  std::string digits;
  base::TextWriter(digits, base::TextWriter::kDigits) << status;
  add(":status", digits);
}

std::optional<std::uint64_t> Http2Fields::add_request(std::string_view head, bool secure) {
  const auto take_until = [&head](std::string_view end) {
    const auto size = std::min(head.find(end), head.size());
    const auto taken = head.substr(0, size);
    head.remove_prefix(std::min(size + end.size(), head.size()));
    return taken;
  };
  add(":method", take_until(" "));
  add(":scheme", secure ? "https" : "http");
  add(":path", take_until(" "));
  take_until("\r\n");
  take_until(": ");
  add(":authority", take_until("\r\n"));
  const auto first = size();
  add_lines(head);
  std::optional<std::uint64_t> length;
  bool is_call = false;
  for (auto i = first; i < size(); ++i) {
    const auto [name, value] = (*this)[i];
    is_call = is_call || (name == "content-type" && is_grpc_type(value));
    if (name != "content-length") continue;
    std::uint64_t number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    length = number;
  }
  if (is_call) add("te", "trailers");
  if (!length && !is_chunked(head)) length = 0;
  return length;
}

Http2Fields::Field Http2Fields::operator[](std::size_t index) const noexcept {
  const auto begin = index == 0 ? 0 : ends_[2 * index - 1];
  const auto middle = ends_[2 * index];
  const std::string_view text = text_;
  return {text.substr(begin, middle - begin), text.substr(middle, ends_[2 * index + 1] - middle)};
}

bool Http2Fields::contains(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < size(); ++i)
    if ((*this)[i].name == name) return true;
  return false;
}

bool Http2RequestText::take_pseudo(std::string_view name, std::string_view value) {
  if (name == ":method")
    method_ = value;
  else if (name == ":path")
    path_ = value;
  else if (name == ":scheme")
    scheme_ = value;
  else if (name == ":authority")
    authority_ = value, has_authority_ = true;
  else if (name == ":protocol")
    opens_websocket_ = equal_ignoring_case(value, "websocket");
  return name.starts_with(':');
}

void Http2RequestText::add(std::string_view name, std::string_view value) {
  size_ += name.size() + value.size() + kFieldOverhead;
  if (is_too_large() || take_pseudo(name, value)) return;
  if (name == "host") {
    several_hosts_ = several_hosts_ || has_host_;
    host_ = value;
    has_host_ = true;
  } else if (name == "cookie") {
    if (!cookies_.empty()) cookies_ += "; ";
    cookies_ += value;
  } else if (!opens_websocket_ || name != "sec-websocket-key") {
    has_length_ = has_length_ || name == "content-length";
    is_grpc_ = is_grpc_ || (name == "content-type" && is_grpc_type(value));
    append_line(lines_, name, value);
  }
}

const char* Http2RequestText::fault() const noexcept {
  if (several_hosts_ || (has_authority_ && has_host_ && !equal_ignoring_case(authority_, host_)))
    return ":authority and Host differ";
  if (!scheme_.empty() && scheme_ != "http" && scheme_ != "https") return ":scheme is neither http nor https";
  if (!path_.empty() && path_ != "*" && !path_.starts_with('/')) return ":path does not begin with a slash";
  if (opens_websocket_ && has_length_) return "a request for a WebSocket has a Content-Length";
  return nullptr;
}

std::string Http2RequestText::head(std::optional<std::uint64_t> body, std::string_view key) const {
  std::string text;
  text.reserve(lines_.size() + cookies_.size() + authority_.size() + host_.size() + path_.size() + 128);
  text.append(opens_websocket_ ? "GET" : method_).append(" ");
  text.append(path_.empty() ? authority_ : path_).append(" HTTP/1.1\r\n");
  if (has_authority_ || has_host_) append_line(text, "host", has_authority_ ? authority_ : host_);
  text += lines_;
  if (!cookies_.empty()) append_line(text, "cookie", cookies_);
  if (opens_websocket_) {
    text += "connection: upgrade\r\nupgrade: websocket\r\n";
    append_line(text, "sec-websocket-key", key);
  } else if (!has_length_ && !body)
    text += "transfer-encoding: chunked\r\n";
  else if (!has_length_ && *body != 0)
    append_line(text, "content-length", std::to_string(*body));
  text += "\r\n";
  return text;
}

void Http2ResponseText::add(std::string_view name, std::string_view value) {
  size_ += name.size() + value.size() + kFieldOverhead;
  if (size_ > most_) return;
  if (name == ":status") {
    status_ = value;
    return;
  }
  append_line(lines_, name, value);
}

void Http2ResponseText::end_fields(std::string& out) {
  if (final_ || too_large_) return;  // the fields were trailers, which end() writes
  final_ = !status_.starts_with('1');
  has_body_ = final_ && !to_head_ && status_ != "204" && status_ != "304";
  unsigned status = 0;
  std::from_chars(status_.data(), status_.data() + status_.size(), status);
  out.append("HTTP/1.1 ")
      .append(status_)
      .append(" ")
      .append(reason_phrase(status))
      .append("\r\n")
      .append(lines_);
  too_large_ = size_ > most_;
  if (too_large_) return append_line(out, "too-large", std::string(most_, '-'));
  out += "\r\n";
  lines_.clear();
  size_ = 0;
}

void Http2ResponseText::add_body(std::string_view octets, std::string& out) const {
  if (octets.empty() || too_large_) return;
  append_chunk_size(out, octets.size());
  out.append(octets).append("\r\n");
}

void Http2ResponseText::end(std::string& out) const {
  if (has_body_ && !too_large_)
    out.append("0\r\n").append(size_ > most_ ? std::string_view() : lines_).append("\r\n");
}

}  // namespace weir::http
