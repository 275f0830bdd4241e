// Reads the keys of a [[rule]] that say how its refusals look, and `retry_after_jitter` of [server].
#include "config/read/percentage.hpp"
#include "config/read/settings_sections.hpp"

#include "weir/http/field_names.hpp"

#include <algorithm>

namespace weir::config {

namespace {

constexpr std::size_t kMostHeaders = 32;
constexpr std::size_t kLongestHeaders = 8 << 10;

// Returns true if a header field can have the value: no control characters, no blanks at its ends.
bool is_whole_field_value(std::string_view text) noexcept {
  const auto good = [](unsigned char c) { return c >= 0x20 && c != 0x7f; };
  return text == text.substr(0, text.find_last_not_of(' ') + 1) && !text.starts_with(' ') &&
         std::all_of(text.begin(), text.end(), good);
}

// Returns why a rule must not set the field; empty if it may.
std::string_view reserved(std::string_view name) {
  static const http::FieldNames kFraming{"Connection",
                                         "Content-Encoding",
                                         "Content-Length",
                                         "Content-Range",
                                         "Keep-Alive",
                                         "Proxy-Connection",
                                         "TE",
                                         "Trailer",
                                         "Transfer-Encoding",
                                         "Upgrade"};
  static const http::FieldNames kWeirs{"Cache-Control", "Date",   "RateLimit*",       "X-RateLimit-*",
                                       "Retry-After",   "grpc-*", "WWW-Authenticate", "X-Request-ID"};
  static const http::FieldNames kCors{"Access-Control-*"};
  static const http::FieldNames kType{"Content-Type"};
  if (kFraming.contains(name)) return "which frames messages or belongs to one connection; remove it";
  if (kWeirs.contains(name)) return "which weir writes itself; remove it";
  if (kCors.contains(name)) return "which weir writes itself; write a [cors] table instead";
  return kType.contains(name) ? "which has a key of its own; write content_type = \"…\" beside body instead"
                              : "";
}

// Returns what is wrong with a field of a refusal; empty if it is valid.
std::string fault_of(const Node& field) {
  if (!is_token(field.key)) return "found an invalid name; expected a name such as \"X-Reason\"";
  if (const auto why = reserved(field.key); !why.empty())
    return "found " + in_quotes(field.key) + ", " + std::string(why);
  const auto* value = field.text();
  if (value == nullptr) return "found " + std::string(type_name(field)) + "; expected a text";
  if (is_whole_field_value(*value)) return {};
  return "found control characters, or blanks at an end; expected the value of a header field";
}

void read_headers(const TableReader& table, policy::Rule& rule) {
  const auto& fields = table.named("headers");
  for (const auto& field : fields) {
    if (std::holds_alternative<Unreadable>(field.value)) continue;
    if (const auto fault = fault_of(field); !fault.empty())
      table.mistake_at(field.line, table.path() + ".headers." + field.key, fault);
    else
      rule.refusal_fields += field.key + ": " + *field.text() + "\r\n";
  }
  if (fields.size() > kMostHeaders || rule.refusal_fields.size() > kLongestHeaders)
    table.mistake("headers", "found " + std::to_string(fields.size()) + " fields of " +
                                 std::to_string(rule.refusal_fields.size()) + " bytes; expected at most " +
                                 std::to_string(kMostHeaders) + " fields of " +
                                 std::to_string(kLongestHeaders) + " bytes together");
}

}  // namespace

bool is_media_type(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

unsigned read_jitter(const TableReader& table) {
  return read_percentage(table, "retry_after_jitter").value_or(0);
}

void read_refusal(const TableReader& table, const proxy::ServerSettings& server, policy::Rule& rule) {
  rule.refusal_status = static_cast<unsigned>(table.whole("status"));
  if (table.has("body")) rule.refusal_body = table.text("body");
  rule.retry_after_jitter = table.has("retry_after_jitter") ? read_jitter(table) : server.retry_after_jitter;
  read_headers(table, rule);
  if (!table.has("content_type")) return;
  rule.refusal_content_type = table.text("content_type");
  if (!is_media_type(rule.refusal_content_type))
    table.mistake("content_type", "found " + in_quotes(rule.refusal_content_type) +
                                      "; expected one such as \"application/json\"");
  else if (!table.mentions("body"))
    table.missing("body", "a text beside content_type, because weir's own text has a type of its own");
}

}  // namespace weir::config
