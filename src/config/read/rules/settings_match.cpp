// Reads the conditions match = { … } of routes, rules and overrides.
#include "config/read/settings_sections.hpp"

#include "weir/base/ip_address.hpp"

#include <algorithm>
#include <charconv>

namespace weir::config {

namespace {

std::string upper(std::string text) {
  for (auto& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

void read_path(const TableReader& table, policy::Match& match) {
  if (!table.has("path")) return;
  const auto text = table.text("path");
  if (!text.starts_with('/') && !text.starts_with('~'))
    return table.mistake("path",
                         "found " + in_quotes(text) + "; expected \"/login\", \"/api/*\" or \"~regex\"");
  if (text.starts_with('/') && text.find('?') != std::string::npos)
    return table.mistake("path", "found " + in_quotes(text) +
                                     "; expected a path without a query; match.query tests the query");
  auto path = policy::PathMatch::parse(text);
  if (!path) return table.mistake("path", path.error().message);
  match.path = std::move(*path);
}

// Reads `methods`. Reports a method in lower case as a mistake, because weir rejects requests with a method
// in lower case (status 400).
void read_methods(const TableReader& table, policy::Match& match) {
  match.methods = table.texts("methods");
  if (table.has("methods") && match.methods.empty())
    table.mistake("methods", "found none; expected methods such as \"GET\"");
  for (std::size_t i = 0; i < match.methods.size(); ++i) {
    const auto& method = match.methods[i];
    if (!is_token(method))
      table.mistake_in("methods", i, "found " + in_quotes(method) + "; expected a method such as \"GET\"");
    else if (method == "CONNECT")
      table.mistake_in("methods", i,
                       "found \"CONNECT\", which weir always refuses with 405; expected "
                       "methods such as \"GET\"");
    else if (upper(method) != method)
      table.mistake_in("methods", i,
                       "found " + in_quotes(method) + ", but methods are case-sensitive; did you mean " +
                           in_quotes(upper(method)) + "?");
  }
}

void read_hosts(const TableReader& table, policy::Match& match) {
  const auto texts = table.texts("host");
  if (table.has("host") && texts.empty())
    table.mistake("host", "found none; expected hosts such as \"api.example.com\"");
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (auto host = policy::HostMatch::parse(texts[i]))
      match.hosts.push_back(std::move(*host));
    else
      table.mistake_in("host", i, "found " + in_quotes(texts[i]) + "; " + host.error().message);
}

// Reports a mistake for each name in the list that is not in `known`. `kind`: what the names stand for, such
// as "listener".
void check_names(const TableReader& table, std::string_view key, const std::vector<std::string>& names,
                 const std::vector<std::string>& known, const std::string& kind) {
  if (table.has(key) && names.empty())
    table.mistake(key, "found none; expected the name of a [[" + kind + "]]");
  const std::vector<std::string_view> choices(known.begin(), known.end());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::find(known.begin(), known.end(), names[i]) != known.end()) continue;
    auto what = "found " + in_quotes(names[i]) + ", but no [[" + kind + "]] has this name";
    what += known.empty() ? "; expected name = " + in_quotes(names[i]) + " in a [[" + kind + "]]"
                          : suggestion(names[i], choices);
    table.mistake_in(key, i, what);
  }
}

// Reads the conditions on the listener, the scheme and the route.
void read_ways(const TableReader& table, const ReadContext& context, policy::Match& match) {
  if (table.has("scheme")) match.https = table.text("scheme") == "https";
  match.listeners = table.texts("listener");
  check_names(table, "listener", match.listeners, context.listeners, "listener");
  match.set_routes(table.texts("route"), context.routes);
  if (table.has("route") && !context.in_rules)
    return table.mistake("route",
                         "found in a [[route]], which weir chooses by its other conditions; expected it in a "
                         "[[rule]]");
  check_names(table, "route", match.routes, context.routes, "route");
}

// Reads the conditions on the tier and on claims. A route must not have a condition on a claim, or on a tier
// that comes from a claim, because weir chooses a route before it verifies the token.
void read_identity(const TableReader& table, const ReadContext& context, policy::Match& match) {
  constexpr const char* kInRoute =
      "found in a [[route]], which weir chooses before it verifies tokens; expected it in a [[rule]]";
  match.tiers = table.texts("tier");
  if (table.has("tier") && match.tiers.empty())
    table.mistake("tier", "found none; expected the names of tiers");
  if (table.has("tier") && context.tier_claim && !context.in_rules)
    table.mistake("tier", std::string(kInRoute) + ", because [client] tier is a claim");
  read_named(table, "claims", NameKind::Parameter, match.claims);
  if (!table.has("claims")) return;
  if (!context.in_rules)
    table.mistake("claims", kInRoute);
  else if (!context.tokens)
    table.mistake("claims",
                  "found without [client] jwt, which says how weir verifies tokens; expected [client] jwt = "
                  "{ … }");
}

void read_addresses(const TableReader& table, policy::Match& match) {
  const auto texts = table.texts("ip");
  if (table.has("ip") && texts.empty())
    table.mistake("ip", "found none; expected addresses or blocks such as \"10.0.0.0/8\"");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (const auto block = base::Cidr::parse(texts[i]))
      match.ip.push_back(*block);
    else
      table.mistake_in("ip", i, fault_of_block(texts[i]));
  }
}

// Returns true for a country code of ISO 3166-1 alpha-2, the form that country databases use.
bool is_country(std::string_view text) {
  const auto letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  return text.size() == 2 && letter(text[0]) && letter(text[1]);
}

void read_countries(const TableReader& table, const ReadContext& context, policy::Match& match) {
  match.countries = table.texts("country");
  if (!table.has("country")) return;
  if (match.countries.empty()) table.mistake("country", "found none; expected countries such as \"CH\"");
  for (std::size_t i = 0; i < match.countries.size(); ++i)
    if (!is_country(match.countries[i]))
      table.mistake_in("country", i,
                       "found " + in_quotes(match.countries[i]) +
                           "; expected two capital letters such as \"CH\" (ISO 3166-1)");
  if (!context.geo) table.mistake("country", no_geo(policy::Attribute::Country));
}

// Returns true for a subdivision of a country, such as "CH-GE" (ISO 3166-2).
bool is_region(std::string_view text) {
  const auto fits = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  return text.size() >= 4 && text.size() <= 6 && is_country(text.substr(0, 2)) && text[2] == '-' &&
         std::all_of(text.begin() + 3, text.end(), fits);
}

bool is_asn(std::string_view text) {
  const auto digits = text.substr(std::min<std::size_t>(text.size(), 2));
  return text.starts_with("AS") && !digits.empty() && digits.size() <= 10 &&
         std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         (digits.size() == 1 || digits.front() != '0');
}

// Reads a list of geographic places, such as countries. `is_valid`: returns true if a text is a valid place.
// `example`: a valid place, for messages.
void read_places(const TableReader& table, const char* key, bool (*is_valid)(std::string_view),
                 const std::string& example, std::vector<std::string>& into) {
  if (!table.has(key)) return;
  into = table.texts(key);
  if (into.empty()) table.mistake(key, "found none; expected texts such as " + example);
  for (std::size_t i = 0; i < into.size(); ++i)
    if (!is_valid(into[i]))
      table.mistake_in(key, i, "found " + in_quotes(into[i]) + "; expected a text such as " + example);
}

void read_geo(const TableReader& table, const ReadContext& context, policy::Match& match) {
  using policy::Attribute;
  const auto is_city = [](std::string_view text) { return !text.empty(); };
  read_countries(table, context, match);
  read_places(table, "city", is_city, "\"Geneva\"", match.cities);
  read_places(table, "region", is_region, "\"CH-GE\" (ISO 3166-2)", match.regions);
  read_places(table, "asn", is_asn, "\"AS3303\"", match.asns);
  if (context.geo) return;
  if (table.has("city")) table.mistake("city", no_geo(Attribute::City));
  if (table.has("region")) table.mistake("region", no_geo(Attribute::Region));
  if (table.has("asn")) table.mistake("asn", no_geo(Attribute::Asn));
}

void read_hours(const TableReader& table, policy::Match& match) {
  if (!table.has("hours") && !table.has("days")) {
    if (table.has("timezone"))
      table.missing("hours", "hours such as \"22:00-06:00\", or days, because timezone is given");
    return;
  }
  policy::Hours hours;
  if (table.has("hours")) {
    if (auto parsed = policy::parse_hours(table.text("hours")))
      hours = *parsed;
    else
      table.mistake("hours", parsed.error().message);
  }
  if (table.has("days")) {
    const auto names = table.texts("days");
    if (names.empty()) table.mistake("days", "found none; expected days such as \"mon\"");
    hours.days = 0;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (const auto day = policy::parse_days({&names[i], 1}))
        hours.days = static_cast<std::uint8_t>(hours.days | *day);
      else
        table.mistake_in("days", i, day.error().message);
  }
  if (auto zone = base::TimeZone::load(table.text("timezone")))
    hours.zone = std::move(*zone);
  else
    table.mistake("timezone", zone.error().message);
  match.hours = std::move(hours);
}

}  // namespace

namespace {

bool is_name(NameKind kind, std::string_view name) {
  switch (kind) {
    case NameKind::Field:
      return is_token(name);
    case NameKind::Parameter:
      return !name.empty();
    case NameKind::Pointer:
      return policy::is_json_pointer(name);
  }
  return false;
}

}  // namespace

void read_named(const TableReader& table, std::string_view key, NameKind kind,
                std::vector<policy::NamedText>& into) {
  for (const auto& entry : table.named(key)) {
    const auto path = table.path() + "." + std::string(key) + "." + entry.key;
    if (std::holds_alternative<Unreadable>(entry.value)) continue;
    if (!is_name(kind, entry.key)) {
      table.mistake_at(entry.line, path,
                       kind == NameKind::Pointer
                           ? "found no JSON pointer (RFC 6901); expected a name such as \"/model\""
                           : "found an invalid name; expected a name such as \"X-Tenant\"");
    } else if (const auto* flag = std::get_if<bool>(&entry.value); flag != nullptr && *flag) {
      into.push_back({entry.key, policy::TextMatch::present()});
    } else if (entry.text() == nullptr) {
      table.mistake_at(entry.line, path,
                       "found " + std::string(flag != nullptr ? "false" : type_name(entry)) +
                           "; expected \"text\", \"~regex\" or true for present");
    } else if (auto text = policy::TextMatch::parse(*entry.text())) {
      into.push_back({entry.key, std::move(*text)});
    } else {
      table.mistake_at(entry.line, path, text.error().message);
    }
  }
}

policy::Match read_match(const TableReader& table, const ReadContext& context) {
  policy::Match match;
  read_path(table, match);
  read_methods(table, match);
  read_hosts(table, match);
  read_ways(table, context, match);
  read_question_conditions(table, context, match);
  read_named(table, "headers", NameKind::Field, match.headers);
  read_named(table, "query", NameKind::Parameter, match.query);
  read_identity(table, context, match);
  read_addresses(table, match);
  read_geo(table, context, match);
  read_hours(table, match);
  read_body_conditions(table, match);
  if (table.has("not")) {
    auto negated = read_match(table.table("not", schema::kMatch), context);
    if (is_everything(negated))
      table.mistake("not", "found no condition, so no request would match; expected at least one");
    match.max_body = std::max(match.max_body, negated.max_body);
    match.negated = std::make_shared<const policy::Match>(std::move(negated));
  }
  return match;
}

std::string fault_of_block(std::string_view text, std::string_view alternative) {
  const auto slash = text.find('/');
  const auto address = base::IpAddress::parse(text.substr(0, slash));
  unsigned prefix = 128;
  if (slash != std::string_view::npos)
    std::from_chars(text.data() + slash + 1, text.data() + text.size(), prefix);
  if (address && address->is_v4() && text.find(':') != std::string_view::npos && prefix < 96)
    return "found " + in_quotes(text) +
           ", but weir compares IPv4-mapped addresses as IPv4; expected a prefix of 96 or more, or an IPv4 "
           "block such as \"10.0.0.0/8\"";
  return "found " + in_quotes(text) + "; expected an address, " + (alternative.empty() ? "or " : "") +
         "a block such as \"10.0.0.0/8\" without bits past its prefix" + std::string(alternative);
}

bool is_everything(const policy::Match& match) {
  return !match.path && match.methods.empty() && match.hosts.empty() && !match.https &&
         match.listeners.empty() && match.domains.empty() && match.descriptor.empty() &&
         match.routes.empty() && match.headers.empty() && match.query.empty() && match.tiers.empty() &&
         match.claims.empty() && match.ip.empty() && match.countries.empty() && match.cities.empty() &&
         match.regions.empty() && match.asns.empty() && !match.hours && match.body_words.empty() &&
         match.json.empty() && !match.negated;
}

}  // namespace weir::config
