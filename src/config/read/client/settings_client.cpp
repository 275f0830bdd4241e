// Reads [client].
#include "config/read/settings_sections.hpp"

#include "weir/net/file.hpp"

#include <algorithm>
#include <utility>

namespace weir::config {

namespace {

using policy::Source;

struct SourceWord {
  std::string_view key;
  Source::Kind kind;
};
constexpr SourceWord kNamedSources[] = {{"header", Source::Kind::Header},
                                        {"query", Source::Kind::Query},
                                        {"cookie", Source::Kind::Cookie},
                                        {"claim", Source::Kind::Claim}};

// Reports a mistake if [client] has no `jwt`, without which there are no claims. `table`: the table in
// [client] with the key `claim`.
void check_claim(const TableReader& client, const TableReader& table) {
  if (!client.mentions("jwt"))
    table.mistake(
        "claim",
        "found without [client] jwt, which says how weir verifies tokens; expected [client] jwt = { … }");
}

Source read_tier(const TableReader& client) {
  const auto table = client.table("tier", schema::kTierSource);
  Source source{Source::Kind::Claim, table.text("claim")};
  if (table.has("claim") && source.name.empty())
    table.mistake("claim", "found \"\"; expected a name such as \"plan\"");
  check_claim(client, table);
  return source;
}

// Reads a table that names exactly one source of a value in a request, such as a header or a query parameter.
Source read_source(const TableReader& client, std::string_view key, const TableSpec& spec) {
  const auto table = client.table(key, spec);
  Source source;
  int found = 0;
  for (const auto& [word, kind] : kNamedSources) {
    if (spec.find(word) == nullptr || !table.has(word)) continue;
    source = {kind, table.text(word)};
    ++found;
    const bool free = kind == Source::Kind::Query || kind == Source::Kind::Claim;
    if (free ? source.name.empty() : !is_token(source.name))
      table.mistake(word, "found " + in_quotes(source.name) + "; expected a name such as \"X-User-ID\"");
  }
  if (source.kind == Source::Kind::Claim) check_claim(client, table);
  if (spec.find("bearer") != nullptr && table.boolean("bearer")) {
    source = {Source::Kind::Bearer, ""};
    ++found;
  }
  if (found != 1 && !table.flawed())
    client.mistake(key, "found " + std::to_string(found) +
                            " sources; expected one: { header = \"…\" }, { query = \"…\" } or " +
                            (spec.find("bearer") != nullptr ? "{ bearer = true }"
                                                            : "{ cookie = \"…\" }, { claim = \"…\" }"));
  return source;
}

std::vector<base::Cidr> read_trusted(const TableReader& table) {
  std::vector<base::Cidr> blocks;
  const auto texts = table.texts("trusted_proxies");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    // weir gives a peer on a unix socket, which has no IP address, the address "::". No other peer can have
    // this address.
    if (const auto block = base::Cidr::parse(texts[i] == "unix:" ? "::" : texts[i]))
      blocks.push_back(*block);
    else
      table.mistake_in("trusted_proxies", i, fault_of_block(texts[i], ", or \"unix:\""));
  }
  return blocks;
}

// Returns true for the name of a header field such as "X-Auth-User", or for a prefix such as "X-Auth-*".
bool is_field_pattern(std::string_view text) noexcept {
  if (text.ends_with('*')) text.remove_suffix(1);
  return text.find('*') == std::string_view::npos && is_token(text);
}

// Returns the header fields that only trusted peers may send: the usual fields, fields that identify clients,
// and the fields that the file lists. An empty list in the file means that there are no such fields.
http::FieldNames read_trusted_fields(const TableReader& table, const policy::ClientSettings& client) {
  const auto texts = table.texts("trusted_fields");
  if (table.has("trusted_fields") && texts.empty()) return {};
  auto fields = http::usual_trusted_fields();
  for (const auto* source : {&client.user, &client.org, &client.service})
    if (source->kind == Source::Kind::Header && is_token(source->name)) fields.add(source->name);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (is_field_pattern(texts[i]))
      fields.add(texts[i]);
    else
      table.mistake_in("trusted_fields", i,
                       "found " + in_quotes(texts[i]) +
                           "; expected a header name such as \"X-Auth-User\", or \"X-Auth-*\" for all names "
                           "with this prefix");
  }
  return fields;
}

// Reads the list of databases. For each address, weir uses the first database that knows something about it.
void read_geo(const TableReader& table, const ReadContext& context, policy::ClientSettings& client) {
  constexpr const char* kExpected = "; expected a database in MaxMind's format";
  const auto texts = table.texts("geo");
  if (texts.empty()) table.mistake("geo", "found none; expected files such as \"GeoLite2-Country.mmdb\"");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto file = resolve(context, texts[i]);
    watch_file(context, file);
    if (const auto fault = net::fault_of_file(file)) {
      table.mistake_in("geo", i, in_quotes(file) + " cannot be read: " + fault->message + kExpected);
    } else if (auto opened = policy::GeoDatabases::open(file)) {
      if (client.geo)
        client.geo->add(*opened);
      else
        client.geo = std::move(*opened);
    } else {
      table.mistake_in("geo", i, in_quotes(file) + ": " + opened.error().message + kExpected);
    }
  }
}

}  // namespace

policy::ClientSettings read_client(const TableReader& table, ReadContext& context) {
  policy::ClientSettings client;
  client.trusted_proxies = read_trusted(table);
  client.address_field = table.choice<policy::AddressField>("address_from");
  client.ipv6_prefix = static_cast<int>(table.whole("ipv6_prefix"));
  if (table.has("api_key")) client.api_key = read_source(table, "api_key", schema::kApiKeySource);
  if (table.has("user")) client.user = read_source(table, "user", schema::kSource);
  if (table.has("org")) client.org = read_source(table, "org", schema::kSource);
  if (table.has("service")) client.service = read_source(table, "service", schema::kSource);
  if (table.has("device")) client.device = read_source(table, "device", schema::kSource);
  if (table.has("tier")) client.tier = read_tier(table);
  context.tier_claim = table.mentions("tier");
  client.trusted_fields = read_trusted_fields(table, client);
  if (table.has("keys")) client.keys = read_api_keys(table, resolve(context, table.text("keys")), context);
  context.tokens = table.mentions("jwt");
  context.geo = table.mentions("geo");
  if (table.has("jwt")) client.tokens = read_tokens(table, context);
  if (table.has("geo")) read_geo(table, context, client);
  client.unknown_keys = table.choice<policy::UnknownKeys>("unknown_keys");
  return client;
}

std::string no_geo(policy::Attribute place) {
  using policy::Attribute;
  if (place == Attribute::Country)
    return "found without a file of countries; expected [client] geo = \"GeoLite2-Country.mmdb\"";
  if (place == Attribute::Asn)
    return "found without a file of autonomous systems; expected [client] geo = \"GeoLite2-ASN.mmdb\"";
  return "found without a file of cities; expected [client] geo = \"GeoLite2-City.mmdb\"";
}

// Reads the keys file. If the file cannot be read, reports a mistake in the setting `keys` of [client] that
// names the file.
policy::ApiKeys read_api_keys(const TableReader& client, const std::string& file, ReadContext& context) {
  watch_file(context, file);
  context.keys_file = file;
  const auto text = net::read_file(file, net::kLargestText);
  if (!text) {
    client.mistake("keys", in_quotes(file) + " cannot be read: " + text.error().message +
                               "; expected a TOML file of [[key]] tables");
    return {};
  }
  auto keys = read_keys(*text, file, *client.source_file().mistakes);
  context.tiers = std::move(keys.tiers);
  return std::move(keys.ring);
}

}  // namespace weir::config
