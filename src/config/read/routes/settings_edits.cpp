// Reads what a [[route]] changes in requests and answers.
#include "config/read/routes/route_parts.hpp"

#include <algorithm>

namespace weir::config {

namespace {

constexpr std::size_t kMostFields = 32;
constexpr std::size_t kLongestFields = 8 << 10;

// Returns true if a header field can have the value: no control characters, no blanks at its ends.
bool is_template_text(std::string_view text) noexcept {
  const auto good = [](unsigned char c) { return c >= 0x20 && c != 0x7f; };
  return !text.empty() && !text.starts_with(' ') && !text.ends_with(' ') &&
         std::all_of(text.begin(), text.end(), good);
}

// Returns true for fields that describe a body or its caching.
bool describes_body(std::string_view name) {
  static const http::FieldNames kOfBodies{"Age",
                                          "Cache-Control",
                                          "CDN-Cache-Control",
                                          "Content-Type",
                                          "Content-Language",
                                          "Content-Location",
                                          "Content-Disposition",
                                          "Content-Digest",
                                          "Repr-Digest",
                                          "ETag",
                                          "Expires",
                                          "Last-Modified",
                                          "Accept-Ranges",
                                          "Surrogate-Control"};
  return kOfBodies.contains(name);
}

// Returns what is wrong with the name; empty if a route may change the field.
std::string fault_of_name(std::string_view name, EditedMessage message, EditKind kind,
                          const ReadContext& context) {
  const bool prefix = kind == EditKind::Remove && name.size() > 1 && name.ends_with('*');
  const auto bare = name.substr(0, name.size() - (prefix ? 1 : 0));
  if (!is_token(bare) || bare.find('*') != std::string_view::npos)
    return "found an invalid name; expected a name such as \"X-Tenant\"" +
           std::string(kind == EditKind::Remove ? ", or \"X-Debug-*\"" : "");
  const auto why = why_reserved(name, message, kind, context);
  return why.empty() ? "" : "found " + in_quotes(name) + ", " + std::string(why);
}

void read_removed(const TableReader& table, EditedMessage message, const ReadContext& context,
                  policy::FieldEdits& into) {
  const auto names = table.texts("remove");
  for (std::size_t i = 0; i < names.size(); ++i)
    if (const auto fault = fault_of_name(names[i], message, EditKind::Remove, context); !fault.empty())
      table.mistake_in("remove", i, fault);
    else
      into.remove(names[i]);
}

// Returns true if the route sends the client's certificate to servers in Client-Cert (RFC 9440). Servers may
// then also trust the field Client-Cert-Chain, so weir must remove the one that a client sent (RFC 9440
// §2.4).
bool writes_certificate(const policy::FieldEdits& edits) {
  return std::any_of(edits.written.begin(), edits.written.end(), [](const policy::EditedField& field) {
    return http::is_same_name(field.name, "Client-Cert") && field.value.has(policy::Placeholder::CertDer);
  });
}

policy::FieldEdits read_field_edits(const TableReader& table, EditedMessage message,
                                    const ReadContext& context) {
  policy::FieldEdits edits;
  read_fields(table, "set", message, context, edits);
  read_fields(table, "add", message, context, edits);
  read_removed(table, message, context, edits);
  if (message == EditedMessage::Request && writes_certificate(edits)) edits.remove("Client-Cert-Chain");
  return edits;
}

std::string read_prefix(const TableReader& table, std::string_view key) {
  auto prefix = table.text(key);
  if (!table.has(key)) return prefix;
  if (const auto fault = policy::fault_of_prefix(prefix); !fault.empty())
    table.mistake(key, "found " + in_quotes(prefix) + "; " + fault);
  return prefix;
}

std::optional<policy::PathRewrite> read_path_rewrite(const TableReader& route) {
  const bool prefixes = route.has("strip_prefix") || route.has("add_prefix");
  if (!prefixes && !route.has("rewrite")) return std::nullopt;
  policy::PathRewrite path;
  path.strip = read_prefix(route, "strip_prefix");
  path.add = read_prefix(route, "add_prefix");
  if (!route.has("rewrite")) return path;
  const auto table = route.table("rewrite", schema::kRewrite);
  if (prefixes)
    route.mistake("rewrite", "found beside strip_prefix or add_prefix; expected one way to change the path");
  if (!table.has("pattern") || !table.has("to")) return path;
  const auto expression = table.text("pattern");
  if (const auto fault = policy::fault_of_expression(expression); !fault.empty()) {
    table.mistake("pattern", "found " + in_quotes(expression) + "; " + fault);
    return path;
  }
  auto pattern = policy::PathPattern::parse(expression, table.text("to"));
  if (pattern)
    path.pattern = std::move(*pattern);
  else
    table.mistake("to", "found " + in_quotes(table.text("to")) + "; " + pattern.error().message);
  return path;
}

}  // namespace

std::optional<policy::TextTemplate> read_template(const TableReader& table, int line, const std::string& path,
                                                  std::string_view text, const ReadContext& context) {
  auto parsed = policy::TextTemplate::parse(text);
  if (!parsed) {
    table.mistake_at(line, path, "found " + in_quotes(text) + "; " + parsed.error().message);
    return std::nullopt;
  }
  for (const auto placeholder : {policy::Placeholder::CertSubject, policy::Placeholder::CertDer})
    if (parsed->has(placeholder) && !context.certificates)
      table.mistake_at(line, path,
                       "found " + std::string(policy::name_of(placeholder)) +
                           ", but no listener asks clients for certificates; expected client_ca in the tls "
                           "of a [[listener]]");
  return std::move(*parsed);
}

void read_fields(const TableReader& table, std::string_view key, EditedMessage message,
                 const ReadContext& context, policy::FieldEdits& into) {
  const auto kind = key == "add" ? EditKind::Add : EditKind::Set;
  const auto& fields = table.named(key);
  std::size_t size = 0;
  for (const auto& field : fields) {
    if (std::holds_alternative<Unreadable>(field.value)) continue;
    const auto path = table.path() + "." + std::string(key) + "." + field.key;
    const auto* const value = field.text();
    auto fault = fault_of_name(field.key, message, kind, context);
    if (fault.empty() && value == nullptr)
      fault = "found " + std::string(type_name(field)) + "; expected a text";
    if (fault.empty() && !is_template_text(*value))
      fault = "found control characters, blanks at an end or no text; expected the value of a header field";
    if (!fault.empty()) {
      table.mistake_at(field.line, path, fault);
      continue;
    }
    size += field.key.size() + value->size();
    auto text = read_template(table, field.line, path, *value, context);
    if (text && text->has(policy::Placeholder::CertDer) && message == EditedMessage::Request &&
        kind == EditKind::Add)
      table.mistake_at(field.line, path,
                       "found {cert_der} in add, which keeps a field of this name that the client sent; "
                       "write it in set");
    else if (text)
      into.add({.name = field.key,
                .value = std::move(*text),
                .replaces = kind == EditKind::Set && message != EditedMessage::OwnResponse,
                .describes_body = describes_body(field.key)});
  }
  if (fields.size() > kMostFields || size > kLongestFields)
    table.mistake(key, "found " + std::to_string(fields.size()) + " fields of " + std::to_string(size) +
                           " bytes; expected at most " + std::to_string(kMostFields) + " fields of " +
                           std::to_string(kLongestFields) + " bytes together");
}

std::shared_ptr<const policy::RouteEdits> read_edits(const TableReader& route, const ReadContext& context) {
  policy::RouteEdits edits;
  const bool responds = route.has("respond");
  for (const std::string_view key : {"strip_prefix", "add_prefix", "rewrite"})
    if (responds && route.has(key))
      route.mistake(key, "found beside respond, but weir forwards no request of this route; remove this key");
  const auto headers = route.table("headers", schema::kHeaders);
  if (responds && headers.has("request"))
    headers.mistake("request",
                    "found beside respond, but weir forwards no request of this route; remove this key");
  edits.path = read_path_rewrite(route);
  edits.request =
      read_field_edits(headers.table("request", schema::kFieldEdits), EditedMessage::Request, context);
  edits.response =
      read_field_edits(headers.table("response", schema::kFieldEdits), EditedMessage::Response, context);
  if (!edits.path && edits.request.empty() && edits.response.empty()) return nullptr;
  return std::make_shared<const policy::RouteEdits>(std::move(edits));
}

}  // namespace weir::config
