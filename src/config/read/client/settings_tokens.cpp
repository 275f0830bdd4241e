// Reads [client.jwt] or the list [[client.jwt]].
#include "config/read/settings_sections.hpp"

#include "weir/fetch/fetch.hpp"
#include "weir/net/file.hpp"

#include <cstdint>
#include <set>
#include <utility>

namespace weir::config {

namespace {

// Reads the file that the setting `key` names. `what`: what the file contains, for messages. Returns an empty
// text after a mistake.
std::string read_key_file(const TableReader& table, const ReadContext& context, std::string_view key,
                          const std::string& what) {
  const auto file = resolve(context, table.text(key));
  watch_file(context, file);
  auto text = net::read_file(file);
  if (!text)
    table.mistake(key, in_quotes(file) + " cannot be read: " + text.error().message + "; expected " + what);
  else if (text->empty())
    table.mistake(key, in_quotes(file) + " is empty; expected " + what);
  return text ? std::move(*text) : std::string();
}

// The settings that say how weir verifies the signature of a token. A table has exactly one of them.
constexpr std::string_view kTokenKeys[] = {"secret", "public_key", "jwks"};

// Returns the setting of kTokenKeys that the algorithm needs; an empty text if the table lacks it. Reports a
// mistake if the setting is missing, and for each other setting of kTokenKeys that the table has.
std::string_view choose_token_key(const TableReader& table, const std::string& algorithm) {
  const bool shared = algorithm.starts_with("HS");
  const std::string_view wanted = shared ? "secret" : !table.has("jwks") ? "public_key" : "jwks";
  for (const auto key : kTokenKeys)
    if (key != wanted && table.has(key)) {
      const auto user = wanted == "jwks" ? std::string("beside jwks") : "by " + algorithm;
      table.mistake(key, "not used " + user + "; expected " + std::string(wanted) + " instead");
    }
  if (table.has(wanted)) return wanted;
  if (!table.flawed())
    table.missing(wanted, shared ? "the secret that " + algorithm + " signs with"
                                 : "the PEM file of the public key that " + algorithm +
                                       " verifies with, or jwks with a file or the URL of keys");
  return {};
}

bool is_url(std::string_view text) noexcept {
  return text.find("://") != std::string_view::npos;
}

// Reads the table `fetch` of an issuer whose `jwks` is a URL.
policy::KeyFetchSettings read_fetch(const TableReader& issuer, const ReadContext& context) {
  const auto table = issuer.table("fetch", schema::kKeyFetch);
  policy::KeyFetchSettings fetch{.url = issuer.text("jwks"),
                                 .refresh = table.deadline("refresh"),
                                 .cooldown = table.deadline("cooldown"),
                                 .wait = table.deadline("wait"),
                                 .timeout = table.deadline("timeout"),
                                 .max_size = static_cast<std::size_t>(table.size("max_size").value_or(1)),
                                 .max_waiting = static_cast<std::uint32_t>(table.whole("max_waiting")),
                                 .ca_file = readable_file(table, "ca", context),
                                 .allow_http = table.boolean("allow_http")};
  const auto fault = fetch::fault_in_url(fetch.url, fetch.allow_http);
  const bool plain = fetch.url.starts_with("http://");
  if (!fault.empty())
    issuer.mistake("jwks", "found " + in_quotes(fetch.url) + "; " + fault +
                               (plain ? "; fetch = { allow_http = true } permits it" : ""));
  if (fetch.max_size == 0) table.mistake("max_size", "found 0; expected a size above zero");
  return fetch;
}

std::optional<policy::TokenVerifier> read_issuer(const TableReader& table, const ReadContext& context) {
  policy::TokenSettings settings{.algorithm = table.text("algorithm"),
                                 .key = {},
                                 .issuer = table.text("issuer"),
                                 .audience = table.text("audience"),
                                 .leeway = table.duration("leeway"),
                                 .require_exp = table.boolean("require_exp")};
  for (const char* key : {"issuer", "audience"})  // an empty text would disable the check of the claim
    if (table.has(key) && table.text(key).empty())
      table.mistake(key, std::string("found \"\"; expected the value that tokens contain, or no ") + key +
                             " to accept any");
  if (!table.has("algorithm") && !table.has("jwks")) {
    if (!table.flawed())
      table.missing(
          "algorithm",
          "the algorithm of the signature, such as \"ES256\", or jwks with a file or the URL of keys");
    return std::nullopt;
  }
  const auto key = choose_token_key(table, settings.algorithm);
  if (key.empty()) return std::nullopt;
  if (key == "secret") {
    settings.key = table.text(key);
    if (settings.key.empty()) table.mistake(key, "found \"\"; expected a secret");
  } else if (key == "jwks" && is_url(table.text(key))) {
    settings.fetch = read_fetch(table, context);
  } else if (key == "jwks") {
    settings.jwks = read_key_file(table, context, key, "the issuer's keys, as a JWK set in JSON");
  } else {
    settings.key = read_key_file(table, context, key, "a public key in PEM");
  }
  if (table.has("fetch") && !settings.fetch)
    table.mistake("fetch", "not used without a URL; expected jwks = \"https://…\" beside it");
  if (settings.key.empty() && settings.jwks.empty() && !settings.fetch) return std::nullopt;
  auto made = policy::TokenVerifier::make(std::move(settings));
  if (made) return std::move(*made);
  table.mistake(key, made.error().message);
  return std::nullopt;
}

// Reports a mistake if another issuer fetches the same URL with other settings in `fetch`, because weir
// fetches each URL once. `others`: the issuers read so far.
void check_fetches(const TableReader& table, const policy::TokenVerifier& issuer,
                   const std::optional<policy::TokenVerifier>& others) {
  if (!others) return;
  const auto known = others->fetched();
  for (const auto& [url, own] : issuer.fetched())
    if (const auto found = known.find(url); found != known.end() && found->second.first != own.first)
      table.mistake("fetch", "differs from that of another issuer with the same jwks; expected the same");
}

}  // namespace

// Reads all issuers. If there are several, each needs a name of its own, because weir chooses the issuer by
// `iss`.
std::optional<policy::TokenVerifier> read_tokens(const TableReader& client, const ReadContext& context) {
  const auto tables = client.tables("jwt", schema::kJwt);
  if (tables.empty())
    client.mistake("jwt", "found none; expected at least one { issuer = \"…\", jwks = \"…\" }");
  std::optional<policy::TokenVerifier> tokens;
  std::set<std::string> names;
  for (const auto& table : tables) {
    auto issuer = read_issuer(table, context);
    const auto name = table.text("issuer");
    if (tables.size() > 1 && !table.has("issuer"))
      table.missing("issuer", "the iss of these tokens, because there are several issuers");
    else if (tables.size() > 1 && !names.insert(name).second)
      table.mistake("issuer", "found " + in_quotes(name) + " twice; expected another issuer in each");
    if (!issuer) continue;
    check_fetches(table, *issuer, tokens);
    if (tokens)
      tokens->add(*issuer);
    else
      tokens = std::move(*issuer);
  }
  return tokens;
}

}  // namespace weir::config
