// Reads [tracing].
#include "config/read/settings_sections.hpp"

#include "weir/base/units.hpp"
#include "weir/http/field_names.hpp"
#include "weir/net/tls_client.hpp"

#include <algorithm>
#include <charconv>

namespace weir::config {

namespace {

constexpr std::size_t kMostHeaders = 32;
constexpr base::Duration kShortestInterval{10'000};
constexpr base::Duration kLongestInterval{60'000'000};

// Parses a share such as "0.25%". Returns the share in parts of a million, such as 2500. Returns nullopt if
// the text is no such share, or has more than three decimals.
std::optional<std::uint32_t> parse_portion(std::string_view text) {
  constexpr std::uint32_t kPercent = observe::kMillion / 100;
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  const auto point = std::min(text.find('.'), text.size());
  auto decimals = std::string(text.substr(std::min(point + 1, text.size())));
  const bool has_point = point != text.size();
  if (decimals.size() > 3 || (has_point && decimals.empty())) return std::nullopt;
  decimals.resize(4, '0');
  const auto number = [](std::string_view digits) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool good = error == std::errc{} && end == digits.data() + digits.size();
    return good ? std::optional(value) : std::nullopt;
  };
  const auto whole = number(text.substr(0, point));
  const auto rest = number(decimals);
  if (!whole || !rest || *whole > 100) return std::nullopt;
  const auto portion = *whole * kPercent + *rest;
  return portion <= observe::kMillion ? std::optional(portion) : std::nullopt;
}

// Returns true for fields that weir or libcurl writes itself.
bool is_reserved(std::string_view name) {
  static const http::FieldNames kReserved{
      "Connection", "Content-Encoding", "Content-Length", "Content-Type",      "Expect",    "Host",
      "TE",         "Trailer",          "Upgrade",        "Transfer-Encoding", "User-Agent"};
  return kReserved.contains(name);
}

void read_headers(const TableReader& table, fetch::Fields& headers) {
  const auto is_value = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  };
  const auto& fields = table.named("headers");
  for (const auto& field : fields) {
    if (std::holds_alternative<Unreadable>(field.value)) continue;
    const auto* value = field.text();
    const auto path = table.path() + ".headers." + field.key;
    if (!is_token(field.key))
      table.mistake_at(field.line, path, "found an invalid name; expected a name such as \"Authorization\"");
    else if (is_reserved(field.key))
      table.mistake_at(field.line, path,
                       "found " + in_quotes(field.key) + ", which weir writes itself; remove it");
    else if (value == nullptr)
      table.mistake_at(field.line, path, "found " + std::string(type_name(field)) + "; expected a text");
    else if (!is_value(*value))
      table.mistake_at(field.line, path,
                       "found characters that a header cannot contain; expected visible ASCII");
    else
      headers.emplace_back(field.key, *value);
  }
  if (fields.size() > kMostHeaders)
    table.mistake("headers", "found " + std::to_string(fields.size()) + " fields; expected at most " +
                                 std::to_string(kMostHeaders));
}

void read_ca(const TableReader& table, const ReadContext& context, log::TracingSettings& tracing) {
  if (!table.has("ca")) return;
  if (!tracing.endpoint.starts_with("https://"))
    return table.mistake("ca", "found with an endpoint that is not https://; remove ca, or write https://");
  tracing.ca = readable_file(table, "ca", context);
  if (is_unreadable(tracing.ca)) return;
  if (const auto made = net::make_tls_client_context({.ca = tracing.ca}); !made)
    table.mistake("ca", made.error().message);
}

base::Duration read_time(const TableReader& table, std::string_view key) {
  const auto time = table.duration(key);
  if (time < kShortestInterval || time > kLongestInterval)
    table.mistake(key, "found " + in_quotes(base::to_string(time)) + "; expected from \"10ms\" to \"1min\"");
  return time;
}

}  // namespace

std::optional<log::TracingSettings> read_tracing(const TableReader& root, const ReadContext& context) {
  if (!root.has("tracing")) return std::nullopt;
  const auto table = root.table("tracing", schema::kTracing);
  log::TracingSettings tracing;
  tracing.endpoint = table.text("endpoint");
  if (table.has("endpoint")) {
    auto fault = fetch::fault_in_url(tracing.endpoint, true);
    if (fault.empty() && tracing.origin() == tracing.endpoint) fault = "expected a URL with a path";
    if (!fault.empty())
      table.mistake("endpoint", "found an address that is no endpoint; " + fault +
                                    "; write one such as \"http://127.0.0.1:4318/v1/traces\"");
  }
  read_headers(table, tracing.headers);
  read_ca(table, context, tracing);
  tracing.service = table.text("service");
  if (!is_plain_name(tracing.service))
    table.mistake("service", "expected 1 to 128 printable ASCII characters without \" and \\");
  if (const auto portion = parse_portion(table.text("sample")))
    tracing.sampling.per_million = *portion;
  else
    table.mistake("sample", "found " + in_quotes(table.text("sample")) +
                                "; expected a share from \"0%\" to \"100%\", such as \"0.5%\"");
  tracing.sampling.parent = table.boolean("follow_parent");
  tracing.sampling.refusals = table.boolean("refusals");
  tracing.max_queue = static_cast<std::size_t>(table.whole("max_queue"));
  tracing.interval = read_time(table, "interval");
  tracing.timeout = read_time(table, "timeout");
  return tracing;
}

}  // namespace weir::config
