#include "weir/http/grpc.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace weir::http {

namespace {

constexpr std::string_view kGrpc = "application/grpc";

// Returns the value of a string member in `json`, which weir itself wrote, so that strings contain no
// escapes. Returns an empty text if there is no such member. `name`: the beginning of the member, up to the
// opening quote of its value.
std::string_view member(std::string_view json, std::string_view name) noexcept {
  const auto at = json.find(name);
  if (at == std::string_view::npos) return {};
  const auto begin = at + name.size();
  return json.substr(begin, json.find('"', begin) - begin);
}

// Appends a text in the encoding of grpc-message: printable ASCII as it is, '%' and other octets as %XX.
void append_percent_encoded(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      out += c;
      continue;
    }
    const auto octet = static_cast<unsigned char>(c);
    out.append({'%', kHex[octet >> 4U], kHex[octet & 15U]});
  }
}

// Returns the text after `beginning` in the first line that begins with `beginning`; empty if there is no
// such line.
std::string_view line_value(std::string_view lines, std::string_view beginning) noexcept {
  while (!lines.empty()) {
    const auto line = lines.substr(0, lines.find("\r\n"));
    if (line.starts_with(beginning)) return line.substr(beginning.size());
    lines.remove_prefix(std::min(line.size() + 2, lines.size()));
  }
  return {};
}

}  // namespace

bool is_grpc_type(std::string_view content_type) noexcept {
  if (!equal_ignoring_case(content_type.substr(0, kGrpc.size()), kGrpc)) return false;
  const auto rest = content_type.substr(kGrpc.size());
  return rest.empty() || rest.front() == '+' || rest.front() == ';';
}

bool is_grpc(const Fields& fields) noexcept {
  const auto* const type = find_field(fields, FieldId::ContentType);
  return type != nullptr && is_grpc_type(type->value);
}

bool is_grpc_in_protobuf(const Fields& fields) noexcept {
  if (!is_grpc(fields)) return false;
  const auto type = find_field(fields, FieldId::ContentType)->value;
  auto subtype = type.substr(kGrpc.size(), type.find(';') - kGrpc.size());
  while (subtype.ends_with(' ') || subtype.ends_with('\t')) subtype.remove_suffix(1);
  return subtype.empty() || equal_ignoring_case(subtype, "+proto");
}

unsigned grpc_status_of(unsigned status) noexcept {
  enum : unsigned {
    kUnknown = 2,
    kInvalidArgument,
    kDeadlineExceeded,
    kPermissionDenied = 7,
    kResourceExhausted,
    kUnimplemented = 12,
    kInternal,
    kUnavailable,
    kUnauthenticated = 16
  };
  switch (status) {
    case 400:
      return kInvalidArgument;
    case 401:
      return kUnauthenticated;
    case 403:
      return kPermissionDenied;
    case 404:
    case 405:
      return kUnimplemented;
    case 408:
    case 504:
      return kDeadlineExceeded;
    case 413:
    case 429:
    case 431:
      return kResourceExhausted;
    case 500:
      return kInternal;
    case 502:
    case 503:
      return kUnavailable;
    default:
      return kUnknown;
  }
}

void append_grpc_status(std::string& fields, unsigned grpc_status, std::string_view message) {
  fields += "grpc-status: ";
  fields += std::to_string(grpc_status);
  fields += "\r\n";
  if (message.empty()) return;
  fields += "grpc-message: ";
  append_percent_encoded(fields, message);
  fields += "\r\n";
}

void make_trailers_only(Answer& answer, std::string& fields) {
  const auto message = member(answer.body, "\"message\":\"");
  append_grpc_status(fields, grpc_status_of(answer.status),
                     message.empty() ? reason_phrase(answer.status) : message);
  if (const auto wait = line_value(fields, "Retry-After: "); !wait.empty()) {
    const std::string seconds(wait);
    fields += "grpc-retry-pushback-ms: " + seconds + "000\r\n";
  }
  answer.fields = fields;
  answer.status = 200;
  answer.content_type = kGrpc;
  answer.body = {};
}

std::optional<base::Duration> grpc_timeout(const Fields& fields) noexcept {
  constexpr std::size_t kMostDigits = 8;
  const auto* const field = find_field(fields, "grpc-timeout");
  if (field == nullptr || field->value.size() < 2 || field->value.size() > kMostDigits + 1)
    return std::nullopt;
  const auto digits = field->value.substr(0, field->value.size() - 1);
  std::int64_t count = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc{} || stop != digits.data() + digits.size() || count < 0) return std::nullopt;
  switch (field->value.back()) {
    case 'H':
      return std::chrono::hours{count};
    case 'M':
      return std::chrono::minutes{count};
    case 'S':
      return std::chrono::seconds{count};
    case 'm':
      return std::chrono::milliseconds{count};
    case 'u':
      return base::Duration{count};
    case 'n':
      return base::Duration{(count + 999) / 1000};
    default:
      return std::nullopt;
  }
}

}  // namespace weir::http
