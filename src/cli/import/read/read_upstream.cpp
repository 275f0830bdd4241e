#include "cli/import/read/read_upstream.hpp"

#include "cli/import/read/zone_key.hpp"
#include "cli/import/syntax/nginx_values.hpp"

#include "weir/base/endpoint.hpp"

#include <algorithm>

namespace weir::cli::nginx {

namespace {

constexpr std::uint64_t kMostWeight = 100;

// Reads the parameters of a server. Returns false if weir must leave the server out.
bool read_parameters(const Directive& directive, UpstreamServer& server, Upstream& upstream, Notes& notes) {
  bool used = true;
  for (std::size_t i = 1; i < directive.arguments.size(); ++i) {
    const auto& word = directive.arguments[i];
    if (const auto weight = after(word, "weight=")) {
      server.weight = std::clamp<std::uint64_t>(parse_number(*weight).value_or(1), 1, kMostWeight);
      if (parse_number(*weight) > kMostWeight) notes.add(directive, word + ": weir takes weights up to 100");
    } else if (const auto most = after(word, "max_conns=")) {
      server.max_in_flight = parse_number(*most).value_or(0);
    } else if (const auto fails = after(word, "max_fails=")) {
      upstream.failures = parse_number(*fails);
    } else if (const auto time = after(word, "fail_timeout=")) {
      upstream.fail_timeout = parse_time(*time);
    } else if (word == "backup") {
      notes.add(directive, "backup: no equal; the server is left out");
      used = false;
    } else if (word == "down") {
      used = false;
    } else if (word != "resolve") {
      notes.add(directive, word + ": no equal");
    }
  }
  return used;
}

void read_upstream_server(const Directive& directive, Upstream& upstream, Notes& notes) {
  if (directive.arguments.empty()) return;
  UpstreamServer server;
  server.address = address_with_port(directive.arguments.front(), "80");
  if (!base::parse_endpoint(server.address)) {
    notes.add(directive, "found \"" + directive.arguments.front() + "\", which is no address");
    return;
  }
  if (!read_parameters(directive, server, upstream, notes)) return;
  const auto same =
      std::find_if(upstream.servers.begin(), upstream.servers.end(),
                   [&](const UpstreamServer& other) { return other.address == server.address; });
  if (same == upstream.servers.end())
    upstream.servers.push_back(std::move(server));
  else
    same->weight = std::min(same->weight + server.weight, kMostWeight);
}

void read_hash(const Directive& directive, Upstream& upstream, Notes& notes) {
  Zone key;
  read_key(directive, directive.arguments.empty() ? std::string_view() : directive.arguments.front(), key,
           notes);
  if (key.key.empty()) return;
  upstream.balance = "hash";
  upstream.hash_key = key.key;
}

void read_balance(const Directive& directive, Upstream& upstream, Notes& notes) {
  const auto& name = directive.name;
  const auto word = directive.arguments.empty() ? std::string() : directive.arguments.front();
  if (name == "least_conn")
    upstream.balance = "least_in_flight";
  else if (name == "random")
    upstream.balance = "random_two";
  else if (name == "hash")
    read_hash(directive, upstream, notes);
  else if (name == "ip_hash") {
    upstream.balance = "hash";
    upstream.hash_key = {"ip"};
  } else if (name == "keepalive")
    upstream.max_idle = parse_number(word);
  else if (name == "keepalive_timeout")
    upstream.idle = parse_time(word);
  else
    notes.add_untranslated(directive);
}

}  // namespace

std::string address_with_port(const std::string& address, const char* port) {
  if (address.starts_with("unix:")) return address;
  const auto colon = address.rfind(':');
  const bool has_port = colon != std::string::npos && address.find(']', colon) == std::string::npos;
  return has_port ? address : address + ":" + port;
}

void read_upstream(const Directive& directive, ImportState& state) {
  if (directive.arguments.empty()) return;
  Upstream upstream;
  upstream.position = directive.position;
  for (const auto& inner : directive.block)
    if (inner.name == "server")
      read_upstream_server(inner, upstream, state.notes);
    else
      read_balance(inner, upstream, state.notes);
  state.result.upstreams.emplace(directive.arguments.front(), std::move(upstream));
}

}  // namespace weir::cli::nginx
