#include "weir/http/grpc_status.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::http {

namespace {

constexpr std::string_view kField = "grpc-status";
constexpr std::array<std::string_view, kMostGrpcStatus + 1> kStatusNames = {
    "OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
};

std::optional<unsigned> parse_number(std::string_view text) noexcept {
  unsigned number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size() || number > kMostGrpcStatus)
    return std::nullopt;
  return number;
}

// Returns the status that gRPC clients assume for a response without a grpc-status
// (http-grpc-status-mapping.md of gRPC).
unsigned status_of_http(unsigned status) noexcept {
  enum : unsigned { kPermissionDenied = 7, kUnimplemented = 12, kInternal = 13, kUnauthenticated = 16 };
  switch (status) {
    case 400:
      return kInternal;
    case 401:
      return kUnauthenticated;
    case 403:
      return kPermissionDenied;
    case 404:
      return kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return kGrpcUnavailable;
    default:
      return kGrpcUnknown;
  }
}

std::string_view value_without_blanks(std::string_view text) noexcept {
  const auto begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

}  // namespace

std::optional<unsigned> parse_grpc_status(std::string_view text) noexcept {
  const auto* const found = std::find(kStatusNames.begin(), kStatusNames.end(), text);
  if (found != kStatusNames.end()) return static_cast<unsigned>(found - kStatusNames.begin());
  return parse_number(text);
}

std::string_view grpc_status_name(unsigned status) noexcept {
  return kStatusNames[std::min(status, kMostGrpcStatus)];
}

std::string grpc_status_names() {
  std::string names;
  for (unsigned status = 0; status <= kMostGrpcStatus; ++status) {
    if (status != 0) names += ", ";
    names += kStatusNames[status];
    names += " (" + std::to_string(status) + ")";
  }
  return names;
}

std::optional<unsigned> grpc_status_in_head(const ResponseHead& head) noexcept {
  if (const auto* const field = find_field(head.fields, kField))
    return parse_number(field->value).value_or(kGrpcUnknown);
  if (head.status == 200 && head.trailers_may_follow) return std::nullopt;
  return status_of_http(head.status);
}

unsigned grpc_status_in_trailers(std::string_view lines) noexcept {
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size() - 1);
    const auto line = lines.substr(0, end + 1);
    lines.remove_prefix(line.size());
    const auto colon = std::min(line.find(':'), line.size());
    if (!equal_ignoring_case(line.substr(0, colon), kField)) continue;
    return parse_number(value_without_blanks(line.substr(std::min(colon + 1, line.size()))))
        .value_or(kGrpcUnknown);
  }
  return kGrpcUnknown;
}

}  // namespace weir::http
