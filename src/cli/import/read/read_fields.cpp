#include "cli/import/read/read_fields.hpp"

#include "cli/import/read/placeholders.hpp"

#include "weir/http/field_names.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace weir::cli::nginx {

namespace {

// Header fields that weir itself sets in requests. `value`: the value in proxy_set_header that has the same
// effect; "": any value.
struct OwnField {
  std::string_view name, value;
};
constexpr std::array kOwnFields = std::to_array<OwnField>({{"X-Forwarded-For", "$proxy_add_x_forwarded_for"},
                                                           {"X-Forwarded-For", "$remote_addr"},
                                                           {"X-Forwarded-Proto", "$scheme"},
                                                           {"X-Forwarded-Host", "$host"},
                                                           {"X-Forwarded-Host", "$http_host"},
                                                           {"X-Request-ID", "$request_id"},
                                                           {"Upgrade", "$http_upgrade"},
                                                           {"Connection", ""}});

bool is_own_field(std::string_view name, std::string_view value) {
  return std::any_of(kOwnFields.begin(), kOwnFields.end(), [&](const OwnField& field) {
    return is_same_field(field.name, name) && (field.value.empty() || field.value == value);
  });
}

// Returns true for fields that weir's routes must not change; docs/routes.md has the reasons.
bool is_fixed(std::string_view name) {
  static const http::FieldNames kFixed{
      "Connection",       "Content-Length",    "Keep-Alive", "Proxy-Connection", "TE",
      "Trailer",          "Transfer-Encoding", "Upgrade",    "HTTP2-Settings",   "Sec-WebSocket-*",
      "Content-Encoding", "Content-Range"};
  return kFixed.contains(name);
}

bool is_fixed_in_requests(std::string_view name) {
  static const http::FieldNames kFixed{
      "Host",         "Expect", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded",
      "X-Request-ID", "Via",    "Max-Forwards"};
  return is_fixed(name) || kFixed.contains(name);
}

// Returns true for header fields that a route of weir may remove but not set.
bool is_only_removed(std::string_view name, bool of_requests) {
  static const http::FieldNames kOfRequests{"Accept-Encoding", "Range", "If-Range"};
  static const http::FieldNames kOfResponses{"RateLimit*", "X-RateLimit-*",    "Retry-After",
                                             "Date",       "WWW-Authenticate", "X-Request-ID",
                                             "grpc-*",     "Location",         "Refresh"};
  return (of_requests ? kOfRequests : kOfResponses).contains(name);
}

// Returns true if TOML accepts the name as a key without quotes.
bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

bool is_field_value(std::string_view value) {
  return !value.empty() && !value.starts_with(' ') && !value.ends_with(' ') &&
         std::all_of(value.begin(), value.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
}

bool has_field(const Fields& fields, const std::string& name) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const auto& field) { return is_same_field(field.first, name); });
}

// Returns true if the value is a variable for the client's field of the same name: "$http_x_a" for X-A.
bool is_clients_own(std::string_view name, std::string_view value) {
  constexpr std::string_view kPrefix = "$http_";
  if (!value.starts_with(kPrefix)) return false;
  auto field = std::string(value.substr(kPrefix.size()));
  std::replace(field.begin(), field.end(), '_', '-');
  return is_same_field(field, name);
}

// Returns the value with weir's placeholders. If weir cannot express the value, adds a note and returns an
// empty text.
std::string field_value(const Directive& directive, Notes& notes) {
  const auto& name = directive.arguments[0];
  auto value = with_placeholders(directive.arguments[1]);
  if (!value.unknown.empty()) {
    notes.add(directive, name + ": no placeholder for " + value.unknown +
                             "; weir import leaves the field out. weir: headers of a [[route]] with text and "
                             "placeholders such as {client_ip}");
    return {};
  }
  if (is_field_value(value.text)) return std::move(value.text);
  notes.add(directive, name + ": no equal; weir writes values without control characters and outer blanks");
  return {};
}

}  // namespace

bool is_same_field(std::string_view a, std::string_view b) {
  return http::equal_ignoring_case(a, b);
}

void read_request_field(const Directive& directive, FieldChanges& changes, Notes& notes) {
  const auto& name = directive.arguments[0];
  const auto& value = directive.arguments[1];
  if (is_own_field(name, value)) return;
  if (!is_plain_name(name) || is_fixed_in_requests(name) || (!value.empty() && is_only_removed(name, true)))
    return notes.add(directive, name +
                                    ": no equal; weir writes this field itself, or passes it on. weir: "
                                    "another name in headers.request of a [[route]]");
  if (value.empty()) {
    changes.remove.push_back(name);
    return;
  }
  if (is_clients_own(name, value)) return;
  auto text = field_value(directive, notes);
  if (text.empty()) {  // removes the client's field, as nginx does, because the server may trust it
    changes.remove.push_back(name);
    return;
  }
  auto& fields = has_field(changes.set, name) ? changes.add : changes.set;
  if (has_field(changes.add, name))
    return notes.add(directive, name + ": not imported; weir import writes two fields of a name");
  fields.emplace_back(name, std::move(text));
}

void read_response_field(const Directive& directive, FieldChanges& changes, Notes& notes) {
  const auto& name = directive.arguments[0];
  if (directive.arguments[1].empty()) return;  // nginx adds no field without a value
  if (!is_plain_name(name) || is_fixed(name) || is_only_removed(name, false) ||
      is_same_field(name, "Content-Type"))
    return notes.add(directive, name +
                                    ": no equal; weir or the server writes this field. weir: "
                                    "headers.response of a [[route]] has the others");
  auto text = field_value(directive, notes);
  if (text.empty()) return;
  if (has_field(changes.add, name))
    return notes.add(directive, name + ": not imported; weir import adds one field of a name");
  const bool always = directive.arguments.size() == 3 && directive.arguments[2] == "always";
  if (!always)
    notes.add(directive, name + ": weir adds the field to answers of every status, as nginx with always");
  changes.add.emplace_back(name, std::move(text));
}

void read_hidden_field(const Directive& directive, FieldChanges& changes, Notes& notes) {
  const auto& name = directive.arguments[0];
  if (!is_plain_name(name) || is_fixed(name))
    return notes.add(directive, name + ": no equal; weir or the server writes this field");
  const auto same = [&](const std::string& other) { return is_same_field(other, name); };
  if (std::none_of(changes.remove.begin(), changes.remove.end(), same)) changes.remove.push_back(name);
}

}  // namespace weir::cli::nginx
