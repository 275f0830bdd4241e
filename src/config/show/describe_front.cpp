#include "config/show/describe_front.hpp"

#include "weir/base/units.hpp"
#include "weir/config/config_errors.hpp"

#include <string_view>
#include <utility>

namespace weir::config {

namespace {

using base::to_string;

std::string certificate_words(const net::CertificateFiles& files) {
  if (files.names.empty()) return files.cert;
  std::string words = "a certificate by ACME for";
  for (const auto& name : files.names) words += " " + name;
  return words;
}

std::string acme_line(const acme::Settings& acme) {
  return "acme: certificates from " + acme.directory + " by " + acme::name_of(acme.challenge) + ", kept in " +
         acme.folder + (acme.email.empty() ? "" : ", contact " + acme.email) +
         (acme.ca.empty() ? "" : ", directory trusted by " + acme.ca) +
         (acme.external_account ? ", for the account " + acme.external_account->kid : "") +
         ", retries from " + to_string(acme.retry) + "\n";
}

// Returns the words about a listener that answers questions. Returns an empty text for a listener that
// forwards requests.
std::string ask_words(const net::ListenerSettings& listener) {
  const auto& ask = listener.ask;
  const std::string token = ask.token.empty() ? "" : " with a token";
  switch (listener.serves) {
    case net::Serves::Proxy:
      break;
    case net::Serves::Decide:
      return ", answers questions in JSON" + token + ", permits for " + to_string(ask.permit_ttl) +
             ", at most " + std::to_string(ask.max_permits);
    case net::Serves::Rls:
      return ", answers Envoy's rate limit calls" + token + ", descriptors " +
             (ask.together ? "together" : "each by itself");
  }
  return {};
}

std::string listener_line(const net::ListenerSettings& listener) {
  auto line = "listener " + listener.address.to_string();
  if (!listener.name.empty()) line += " " + in_quotes(listener.name);
  if (!listener.tls) {
    line += " plain";
  } else {
    line += listener.tls->min_version == net::TlsVersion::Tls13 ? " TLS from 1.3" : " TLS from 1.2";
    for (const auto& files : listener.tls->certificates) line += ", " + certificate_words(files);
    if (!listener.tls->client_ca.empty())
      line += (listener.tls->client_auth == net::ClientAuth::Require ? ", client certificates required by "
                                                                     : ", client certificates optional by ") +
              listener.tls->client_ca;
    if (!listener.tls->client_crl.empty())
      line += ", revoked certificates rejected by " + listener.tls->client_crl;
  }
  if (listener.protocols.h2) line += listener.protocols.http1 ? ", HTTP/2 and HTTP/1.1" : ", HTTP/2 only";
  if (listener.protocols.h2c)
    line += listener.protocols.http1 ? ", HTTP/2 by prior knowledge and HTTP/1.1"
                                     : ", HTTP/2 by prior knowledge only";
  if (listener.proxy_protocol) line += ", PROXY protocol";
  return line + ask_words(listener) + "\n";
}

std::string trust_line(const policy::ClientSettings& client) {
  if (client.trusted_proxies.empty()) return "";
  std::string line = "trusted proxies";
  for (const auto& block : client.trusted_proxies) {
    const auto text = block.to_string();
    line += " " + (text == "::/128" ? "unix:" : text);
  }
  return line + ", client address from " +
         (client.address_field == policy::AddressField::Forwarded ? "Forwarded" : "X-Forwarded-For") + "\n";
}

std::string source_words(const policy::Source& source) {
  constexpr std::string_view kKinds[] = {"nothing", "header ", "query ", "cookie ", "bearer", "claim "};
  return std::string(kKinds[static_cast<std::size_t>(source.kind)]) + source.name;
}

// Returns lines that say where requests contain the identity of their client. Leaves out sources that are the
// default.
std::string source_lines(const policy::ClientSettings& client) {
  const std::pair<const char*, const policy::Source*> sources[] = {{"user", &client.user},
                                                                   {"org", &client.org},
                                                                   {"service", &client.service},
                                                                   {"device", &client.device},
                                                                   {"tier", &client.tier}};
  const policy::Source usual{policy::Source::Kind::Header, "X-API-Key"};
  std::string text;
  if (client.api_key.kind != usual.kind || client.api_key.name != usual.name)
    text += "api_key from " + source_words(client.api_key) + "\n";
  for (const auto& [name, source] : sources)
    if (source->kind != policy::Source::Kind::None)
      text += std::string(name) + " from " + source_words(*source) + "\n";
  if (client.ipv6_prefix != 64) text += "IPv6 clients by /" + std::to_string(client.ipv6_prefix) + "\n";
  return text;
}

std::string keys_line(const policy::ClientSettings& client) {
  if (!client.keys) return "";
  constexpr std::string_view kUnknown[] = {"anonymous", "rejected", "accepted"};
  const auto keys = client.keys->size();
  return "keys file with " + std::to_string(keys) + (keys == 1 ? " key" : " keys") + ", unknown keys are " +
         std::string(kUnknown[static_cast<std::size_t>(client.unknown_keys)]) + "\n";
}

std::string fetch_line(const policy::KeyFetchSettings& fetch) {
  auto line = "    keys from " + fetch.url + ", fetched every " + to_string(fetch.refresh) +
              ", for an unknown kid at most every " + to_string(fetch.cooldown) + "; requests wait up to " +
              to_string(fetch.wait) + ", at most " + std::to_string(fetch.max_waiting) +
              " of them\n    a fetch takes up to " + to_string(fetch.timeout) + " and " +
              size_words(fetch.max_size);
  if (!fetch.ca_file.empty()) line += ", with the authorities in " + in_quotes(fetch.ca_file);
  return line + (fetch.url.starts_with("http://") ? ", without TLS\n" : "\n");
}

std::string token_line(const policy::TokenSettings& tokens) {
  auto line =
      "tokens " + (tokens.algorithm.empty() ? std::string("of any algorithm in jwks") : tokens.algorithm);
  line += tokens.issuer.empty() ? ", of any issuer" : ", of issuer " + in_quotes(tokens.issuer);
  line += tokens.audience.empty() ? ", for any audience" : ", for audience " + in_quotes(tokens.audience);
  line += ", leeway " + to_string(tokens.leeway);
  line += tokens.require_exp ? ", exp required\n" : "\n";
  return tokens.fetch ? line + fetch_line(*tokens.fetch) : line;
}

std::string client_lines(const policy::ClientSettings& client) {
  auto text = trust_line(client) + source_lines(client) + keys_line(client);
  if (client.tokens)
    for (const auto& issuer : client.tokens->settings()) text += token_line(issuer);
  if (client.geo) text += "places by " + client.geo->names() + "\n";
  return text;
}

std::string bound_lines(const proxy::ServerSettings& server) {
  auto text = "bounds: heads up to " + size_words(server.max_head) +
              (server.max_body != 0 ? ", bodies up to " + size_words(server.max_body) : "") + ", " +
              std::to_string(server.max_connections) + " connections";
  if (server.max_connections_per_ip != 0)
    text += ", " + std::to_string(server.max_connections_per_ip) + " for each address";
  if (server.max_in_flight != 0) text += ", " + std::to_string(server.max_in_flight) + " requests in flight";
  text += "\n    head " + to_string(server.head_timeout) + ", body " + to_string(server.body_timeout) +
          ", write " + to_string(server.write_timeout) + ", idle " + to_string(server.idle_timeout);
  if (server.half_close == proxy::HalfClose::End) text += "; a half-close ends the request";
  if (server.min_rate.octets_per_second != 0)
    text += "; at least " + std::to_string(server.min_rate.octets_per_second) + " bytes a second over " +
            to_string(server.min_rate.grace);
  return text + "\n";
}

std::string stop_line(const proxy::ServerSettings& server) {
  if (server.drain_delay.count() == 0) return "";
  return "stop: not ready but serving for " + to_string(server.drain_delay) + ", then a drain of up to " +
         to_string(server.drain) + "\n";
}

std::string name_server_line(const proxy::ServerSettings& server) {
  if (server.nameservers.empty()) return "";
  std::string line = "names of servers: asked of";
  for (const auto& each : server.nameservers) line += " " + each.to_string();
  return line + "\n";
}

std::string cors_line(const http::CorsSettings& cors) {
  std::string line = "cors: pages of";
  if (cors.any_origin) line += " every origin";
  for (const auto& origin : cors.origins) line += " " + origin;
  if (cors.credentials) line += ", with credentials";
  return line + (cors.answers_preflights ? ", weir answers preflights, which browsers remember for " +
                                               to_string(cors.max_age) + "\n"
                                         : ", servers answer preflights\n");
}

std::string alert_line(const admin::AlertSettings& alert) {
  auto line = "alert " + in_quotes(alert.name) + ": ";
  switch (alert.on) {
    case admin::AlertOn::Refusals:
      line += "refusals of rule " + in_quotes(alert.subject);
      break;
    case admin::AlertOn::ClientRefusals:
      line += "refusals of each client of rule " + in_quotes(alert.subject);
      break;
    case admin::AlertOn::Upstream:
      line += "failures of upstream " + in_quotes(alert.subject);
      break;
    case admin::AlertOn::Redis:
      line += "failures of " + alert.subject;
      break;
  }
  line += " above " + limit::to_string(alert.surge.above);
  if (alert.on == admin::AlertOn::ClientRefusals)
    line += ", for up to " + std::to_string(alert.max_clients) + " clients at once";
  if (alert.surge.lasting.count() != 0) line += " for " + to_string(alert.surge.lasting);
  // Omits the path of the webhook's URL, because the path is often a secret.
  line +=
      std::string(" -> ") + (alert.webhook.tls ? "https://" : "http://") + alert.webhook.address.to_string();
  if (alert.surge.repeat.count() != 0) line += ", repeated every " + to_string(alert.surge.repeat);
  return line + ", at most " + limit::to_string(alert.posts.rate()) + ", " + std::to_string(alert.attempts) +
         " attempts of " + to_string(alert.timeout) + "\n";
}

// Returns the line about spans, such as "spans to http://127.0.0.1:4318: 1% of requests, or as a trusted
// traceparent says, and every refusal".
std::string tracing_line(const log::TracingSettings& tracing) {
  const auto& sampling = tracing.sampling;
  constexpr std::uint32_t kPercent = observe::kMillion / 100;
  auto decimals = std::to_string(kPercent + sampling.per_million % kPercent).substr(1);
  decimals.erase(decimals.find_last_not_of('0') + 1);
  return "spans to " + tracing.origin() + ": " + std::to_string(sampling.per_million / kPercent) +
         (decimals.empty() ? "" : "." + decimals) + "% of requests" +
         (sampling.parent ? ", or as a trusted traceparent says" : "") +
         (sampling.refusals ? ", and every refusal" : "") + "\n";
}

}  // namespace

std::string front_lines(const Settings& settings) {
  std::string text;
  for (const auto& listener : settings.listeners) text += listener_line(listener);
  if (settings.admin.address)
    text += "admin " + settings.admin.address->to_string() +
            (settings.admin.token.empty() ? "" : " with a token") + "\n";
  text += bound_lines(settings.server);
  text += name_server_line(settings.server);
  text += stop_line(settings.server);
  if (settings.server.retry_after_jitter != 0)
    text +=
        "Retry-After up to " + std::to_string(settings.server.retry_after_jitter) + "% longer, by chance\n";
  if (settings.tracing) text += tracing_line(*settings.tracing);
  if (settings.acme) text += acme_line(*settings.acme);
  if (settings.cors) text += cors_line(*settings.cors);
  return text + client_lines(settings.client);
}

std::string alert_lines(const Settings& settings) {
  std::string text;
  for (const auto& alert : settings.alerts) text += alert_line(alert);
  return text;
}

std::string size_words(std::uint64_t bytes) {
  if (bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + "MiB";
  if (bytes % (1 << 10) == 0) return std::to_string(bytes >> 10) + "KiB";
  return std::to_string(bytes) + " bytes";
}

}  // namespace weir::config
