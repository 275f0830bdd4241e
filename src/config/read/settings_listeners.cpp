// Reads [[listener]].
#include "config/read/settings_sections.hpp"

#include "weir/base/ip_address.hpp"
#include "weir/base/units.hpp"
#include "weir/config/locations.hpp"
#include "weir/limit/rate.hpp"
#include "weir/net/revocation_lists.hpp"
#include "weir/net/tls_context.hpp"
#include "weir/net/tls_files.hpp"

#include <algorithm>

namespace weir::config {

namespace {

constexpr std::uint64_t kLeastWindow = 16 << 10;  // octets
constexpr std::uint64_t kMostWindow = 1U << 30;   // below the bound of RFC 9113 §6.9.1

// Loads the certificate and its private key with OpenSSL, and reports mistakes in the files.
void check_pair(const TableReader& table, const net::CertificateFiles& files) {
  if (!holds_something(files.cert)) return;
  if (const auto fault = net::fault_of_certificate(files.cert)) return table.mistake("cert", fault->message);
  if (!holds_something(files.key)) return;
  net::TlsSettings alone;
  alone.certificates = {{files.cert, files.key}};
  if (const auto made = net::make_tls_context(alone); !made)
    return table.mistake("key", made.error().message);
  if (!holds_something(files.ocsp)) return;
  alone.certificates = {files};
  if (const auto stapled = net::make_tls_context(alone); !stapled)
    table.mistake("ocsp", stapled.error().message);
}

void check_both_given(const TableReader& table) {
  if (!table.mentions("cert"))
    table.missing("cert",
                  "a PEM file with the certificate, then its chain; or acme, a list of host names for "
                  "which weir orders the certificate");
  if (!table.mentions("key")) table.missing("key", "a PEM file with its private key");
}

void read_client_ca(const TableReader& table, net::TlsSettings& tls, ReadContext& context) {
  tls.client_auth = table.choice<net::ClientAuth>("client_auth");
  if (!table.has("client_ca")) {
    for (const char* key : {"client_auth", "client_crl"})
      if (table.has(key))
        return table.missing("client_ca", std::string("a file of authorities, because ") + key + " is given");
    return;
  }
  context.certificates = true;
  tls.client_ca = readable_file(table, "client_ca", context);
  if (table.has("client_crl")) tls.client_crl = readable_file(table, "client_crl", context);
  if (!holds_something(tls.client_ca)) return;
  if (const auto fault = net::fault_of_client_ca(tls.client_ca))
    return table.mistake("client_ca", fault->message);
  if (!holds_something(tls.client_crl)) return;
  if (const auto fault = net::fault_of_client_crl(tls.client_ca, tls.client_crl))
    table.mistake("client_crl", fault->message);
}

net::TlsSettings read_tls(const TableReader& table, ReadContext& context) {
  net::TlsSettings tls;
  for (const auto& entry : table.tables("certificates", schema::kCertificate)) {
    if (entry.mentions("acme")) {
      tls.certificates.push_back(read_acme_certificate(entry, context));
      continue;
    }
    check_both_given(entry);
    tls.certificates.push_back({.cert = readable_file(entry, "cert", context),
                                .key = readable_file(entry, "key", context),
                                .ocsp = readable_file(entry, "ocsp", context, "DER")});
    check_pair(entry, tls.certificates.back());
  }
  if (table.has("certificates") && tls.certificates.empty())
    table.mistake("certificates", "found none; expected at least one { cert = \"…\", key = \"…\" }");
  tls.min_version = table.choice<net::TlsVersion>("min_version");
  read_client_ca(table, tls, context);
  tls.ticket_rotation = table.deadline("ticket_rotation");
  return tls;
}

// Returns true if a socket that listens on the address `one` also accepts connections to `other`. A socket on
// [::] also accepts connections to IPv4 addresses.
bool covers(const base::IpAddress& one, const base::IpAddress& other) {
  return one == other || one == base::IpAddress{} || (one == base::IpAddress::v4(0) && other.is_v4());
}

// Returns true if two listeners cannot use these addresses at the same time. Does not look up names.
bool collide(const base::Endpoint& one, const base::Endpoint& other) {
  if (one.is_unix() || other.is_unix()) return one == other;
  if (one.port == 0 || one.port != other.port) return false;
  const auto a = base::IpAddress::parse(one.host);
  const auto b = base::IpAddress::parse(other.host);
  if (!a || !b) return one.host == other.host;
  return covers(*a, *b) || covers(*b, *a);
}

// Reads which versions of HTTP the clients of a listener may use.
void read_protocols(const TableReader& table, net::ListenerSettings& listener) {
  const bool tls = table.has("tls");
  const bool rls = table.text("serves") == "rls";
  const std::string_view names_here[] = {"http/1.1", tls ? "h2" : "h2c"};
  listener.protocols.h2 = tls;
  if (rls) listener.protocols = {.http1 = false, .h2 = tls, .h2c = !tls};
  if (!table.has("protocols")) return;
  listener.protocols = {.http1 = false};
  const auto names = table.texts("protocols");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& name = names[i];
    if (name == "http/1.1" && rls)
      table.mistake_in("protocols", i,
                       std::string("found \"http/1.1\" with serves = \"rls\", but gRPC needs HTTP/2; "
                                   "expected [\"") +
                           (tls ? "h2" : "h2c") + "\"], or remove this key");
    else if (name == "http/1.1")
      listener.protocols.http1 = true;
    else if (name == "h2" && tls)
      listener.protocols.h2 = true;
    else if (name == "h2c" && !tls)
      listener.protocols.h2c = true;
    else if (name == "h2")
      table.mistake_in("protocols", i,
                       "found \"h2\" without tls; write \"h2c\", which is HTTP/2 without TLS, or add tls");
    else if (name == "h2c")
      table.mistake_in("protocols", i, "found \"h2c\" with tls; write \"h2\", which is HTTP/2 over TLS");
    else
      table.mistake_in("protocols", i, "found " + in_quotes(name) + suggestion(name, names_here));
  }
  if (names.empty()) table.mistake("protocols", "found none; expected \"http/1.1\", \"h2\" or both");
}

std::uint32_t window_of(const TableReader& table, std::string_view key) {
  const auto size = table.size(key).value_or(kLeastWindow);
  if (size < kLeastWindow || size > kMostWindow)
    table.mistake(key, "found " + std::to_string(size) + " bytes; expected a size from 16KiB to 1GiB");
  return static_cast<std::uint32_t>(size);
}

net::Http2Options read_http2(const TableReader& table) {
  net::Http2Options http2;
  http2.max_streams = static_cast<std::uint32_t>(table.whole("max_streams"));
  http2.stream_window = window_of(table, "stream_window");
  http2.connection_window = window_of(table, "connection_window");
  const auto resets = table.rate("resets").value_or(limit::Rate{});
  http2.resets = static_cast<std::uint32_t>(resets.count);
  http2.resets_within = resets.period;
  http2.ping = table.deadline("ping");
  return http2;
}

// Reads the name of a listener; empty if it has none.
std::string read_listener_name(const TableReader& table, ReadContext& context) {
  if (!table.has("name")) return {};
  auto name = table.text("name");
  auto& taken = context.listeners;
  if (!is_plain_name(name))
    table.mistake(
        "name", "found " + in_quotes(name) + "; expected 1 to 128 printable ASCII characters but \" and \\");
  else if (std::find(taken.begin(), taken.end(), name) != taken.end())
    table.mistake("name", "found " + in_quotes(name) + " a second time; expected a unique name");
  taken.push_back(name);
  return name;
}

}  // namespace

void take_address(const TableReader& table, const base::Endpoint& address, ReadContext& context) {
  for (const auto& [other, line] : context.taken)
    if (collide(address, other))
      table.mistake("address", "found " + in_quotes(address.to_string()) + ", which collides with " +
                                   in_quotes(other.to_string()) + " on line " + std::to_string(line) +
                                   "; expected another address");
  context.taken.push_back({address, table.node("address")->line});
}

std::vector<net::ListenerSettings> read_listeners(const TableReader& root, ReadContext& context) {
  std::vector<net::ListenerSettings> listeners;
  for (const auto& table : root.tables("listener", schema::kListener)) {
    net::ListenerSettings listener;
    listener.name = read_listener_name(table, context);
    const auto address = table.address("address");
    listener.address = address.value_or(base::Endpoint{});
    listener.proxy_protocol = table.boolean("proxy_protocol");
    read_protocols(table, listener);
    if (table.has("http2")) listener.http2 = read_http2(table.table("http2", schema::kHttp2));
    if (table.has("tls")) listener.tls = read_tls(table.table("tls", schema::kTls), context);
    if (listener.tls) listener.tls->protocols = listener.protocols;
    read_ask(table, listener, context);
    if (address) {
      take_address(table, *address, context);
      context.lines[name_of(listener)] = table.node("address")->line;
    }
    listeners.push_back(std::move(listener));
  }
  const bool none = root.has("listener") ? listeners.empty() : !root.mentions("listener");
  if (none) root.missing("listener", "at least one [[listener]] with an address");
  return listeners;
}

}  // namespace weir::config
