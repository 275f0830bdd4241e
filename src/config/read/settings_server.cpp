// Reads [server], [admin] and [log].
#include "config/read/settings_sections.hpp"

#include "weir/base/ip_address.hpp"
#include "weir/config/locations.hpp"

#include <algorithm>

namespace weir::config {

namespace {

constexpr std::uint64_t kLeastHead = 1 << 10;
constexpr std::uint64_t kMostHead = 1 << 20;
// The minimum length in bytes of a listener's token, if other machines can reach the listener.
constexpr std::size_t kShortestToken = 16;

void read_header_families(const TableReader& table, proxy::ServerSettings& server) {
  constexpr std::string_view kFamilies[] = {"x", "ietf"};
  server.x_ratelimit = server.ietf_ratelimit = false;
  const auto families = table.texts("ratelimit_headers");
  for (std::size_t i = 0; i < families.size(); ++i) {
    const auto& family = families[i];
    if (family == "x")
      server.x_ratelimit = true;
    else if (family == "ietf")
      server.ietf_ratelimit = true;
    else
      table.mistake_in("ratelimit_headers", i, "found " + in_quotes(family) + suggestion(family, kFamilies));
  }
}

void read_sizes(const TableReader& table, proxy::ServerSettings& server) {
  const auto head = table.size("max_head");
  if (head && (*head < kLeastHead || *head > kMostHead))
    table.mistake("max_head", "found " + std::to_string(*head) + " bytes; expected a size from 1KiB to 1MiB");
  const auto body = table.size("max_body");
  if (body && *body == 0)
    table.mistake("max_body", "found 0; expected a size above zero, or remove this key for no limit");
  const auto memory = table.size("max_body_memory");
  if (memory && *memory == 0)
    table.mistake("max_body_memory", "found 0; expected a size above zero, such as \"64MiB\"");
  server.max_body_memory = memory.value_or(server.max_body_memory);
  server.max_head = head.value_or(kMostHead);
  server.max_body = body.value_or(0);
}

// Reads `nameservers`. They must be IP addresses, because weir would need a name server to look up the name
// of another.
std::vector<base::Endpoint> read_name_servers(const TableReader& table) {
  constexpr std::uint16_t kDnsPort = 53;
  constexpr std::size_t kMost = 8;
  std::vector<base::Endpoint> servers;
  const auto texts = table.texts("nameservers");
  if (texts.size() > kMost)
    table.mistake("nameservers", "found " + std::to_string(texts.size()) + "; expected at most " +
                                     std::to_string(kMost) + " name servers");
  if (table.has("nameservers") && texts.empty() && !table.flawed())
    table.mistake("nameservers",
                  "found none; expected at least one address, or remove this key to ask those of "
                  "/etc/resolv.conf");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto endpoint = base::IpAddress::parse(texts[i])
                        ? base::Result<base::Endpoint>{base::Endpoint{texts[i], kDnsPort, {}}}
                        : base::parse_endpoint(texts[i]);
    if (endpoint && endpoint->port != 0 && base::IpAddress::parse(endpoint->host))
      servers.push_back(std::move(*endpoint));
    else
      table.mistake_in("nameservers", i,
                       "found " + in_quotes(texts[i]) +
                           "; expected the IP address of a name server such as \"10.0.0.53\", or with a "
                           "port \"127.0.0.1:5353\" or \"[::1]:5353\"");
  }
  return servers;
}

}  // namespace

bool is_loopback(const base::Endpoint& address) {
  if (address.is_unix() || address.host == "localhost") return true;
  const auto ip = base::IpAddress::parse(address.host);
  static const auto v4 = base::Cidr::parse("127.0.0.0/8");
  static const auto v6 = base::Cidr::parse("::1");
  return ip && (v4->contains(*ip) || v6->contains(*ip));
}

std::string read_token(const TableReader& table, const base::Endpoint& address) {
  auto token = table.text("token");
  // RFC 6750 §2.1 allows fewer characters in a token. weir accepts all characters that a header can contain.
  if (std::any_of(token.begin(), token.end(), [](char c) { return c <= ' ' || c > '~'; }))
    table.mistake("token",
                  "found blanks, line breaks or non-ASCII characters; expected visible ASCII, which fits in "
                  "an Authorization header");
  // The message shows only the length, because a token must not appear in messages.
  if (!token.empty() && token.size() < kShortestToken && !is_loopback(address))
    table.mistake("token", "found " + std::to_string(token.size()) + " characters, but " +
                               address.to_string() +
                               " can be reached from other machines, which could guess the token; expected " +
                               std::to_string(kShortestToken) +
                               " characters or more, such as \"openssl rand -hex 16\" prints");
  return token;
}

proxy::ServerSettings read_server(const TableReader& table) {
  proxy::ServerSettings server;
  server.workers = static_cast<unsigned>(table.whole("workers"));
  server.drain = table.duration("drain");
  server.drain_delay = table.duration("drain_delay");
  server.upgrade_timeout = table.deadline("upgrade_timeout");
  server.upgrade_pause = table.deadline("upgrade_pause");
  read_header_families(table, server);
  server.retry_after_jitter = read_jitter(table);
  server.forwarded = table.boolean("forwarded");
  server.underscores_in_headers = table.boolean("underscores_in_headers");
  read_sizes(table, server);
  server.bounds = {.parameters = static_cast<std::size_t>(table.whole("max_parameters")),
                   .repeats = static_cast<std::size_t>(table.whole("max_repeats"))};
  server.max_connections = static_cast<std::uint64_t>(table.whole("max_connections"));
  server.max_connections_per_ip = static_cast<std::uint64_t>(table.whole("max_connections_per_ip"));
  server.max_in_flight = static_cast<std::uint64_t>(table.whole("max_in_flight"));
  server.head_timeout = table.deadline("head_timeout");
  server.body_timeout = table.deadline("body_timeout");
  server.write_timeout = table.deadline("write_timeout");
  server.min_rate = {.octets_per_second = table.size("min_rate").value_or(0),
                     .grace = table.deadline("min_rate_grace")};
  server.idle_timeout = table.deadline("idle_timeout");
  server.half_close = table.choice<proxy::HalfClose>("half_close");
  server.certificate_check = table.duration("certificate_check");
  server.nameservers = read_name_servers(table);
  server.watch = table.boolean("watch");
  return server;
}

AdminSettings read_admin(const TableReader& root, ReadContext& context) {
  AdminSettings admin;
  const auto table = root.table("admin", schema::kAdmin);
  admin.address = table.address("address");
  if (admin.address) {
    take_address(table, *admin.address, context);
    context.lines["[admin]"] = table.node("address")->line;
  }
  admin.token = read_token(
      table, admin.address.value_or(base::Endpoint{.host = "localhost", .port = 0, .unix_path = {}}));
  admin.top = static_cast<std::size_t>(table.whole("top"));
  if (!admin.address || is_loopback(*admin.address)) return admin;
  if (admin.token.empty())
    table.missing("token", "a token, because " + admin.address->to_string() +
                               " can be reached from other machines: set token = \"${WEIR_ADMIN_TOKEN}\", or "
                               "listen on address = \"127.0.0.1:" +
                               std::to_string(admin.address->port) + "\" or \"unix:/path\"");
  return admin;
}

namespace {

// Reads the list of fields in the access log: names of fields, or "usual" for the default set.
observe::LogFields read_log_fields(const TableReader& table) {
  observe::LogFields fields;
  std::vector<std::string_view> words{"usual"};
  words.insert(words.end(), observe::kLogFieldNames.begin(), observe::kLogFieldNames.end());
  const auto texts = table.texts("fields");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto found = std::find(words.begin(), words.end(), texts[i]);
    if (found == words.end())
      table.mistake_in("fields", i, "found " + in_quotes(texts[i]) + suggestion(texts[i], words));
    else if (found == words.begin())
      fields.add_all(observe::LogFields::usual());
    else if (const auto field = static_cast<observe::LogField>(found - words.begin() - 1);
             field == observe::LogField::Replay)
      fields.add_all(observe::LogFields::for_replay());
    else
      fields.add(field);
  }
  if (texts.empty())
    table.mistake("fields", "found none; expected names of fields, or access = \"off\" for no log");
  return fields;
}

// Returns what is wrong with a log file's name; empty if the name is valid. Rejects words with a special
// meaning in other programs, such as "stdout".
std::string fault_of_log_name(const std::string& name) {
  auto word = name;
  for (auto& c : word)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const bool is_stream = word == "stdout" || word == "stderr";
  if (!is_stream && (word != "off" || name == "off")) return {};
  return "found " + in_quotes(name) + ", which would create a file of that name; expected " +
         (is_stream ? "\"-\" for standard output" : "\"off\" for no log") + ", or " + in_quotes("./" + name) +
         " for the file";
}

}  // namespace

LogSettings read_log(const TableReader& table, const ReadContext& context) {
  LogSettings log;
  log.access = table.text("access");
  if (log.access.empty()) table.mistake("access", "found \"\"; expected a file, \"-\" or \"off\"");
  if (const auto fault = fault_of_log_name(log.access); !fault.empty()) table.mistake("access", fault);
  if (log.access != "-" && log.access != "off") log.access = resolve(context, log.access);
  log.fields = read_log_fields(table);
  log.level = table.choice<log::LogLevel>("level");
  return log;
}

}  // namespace weir::config
