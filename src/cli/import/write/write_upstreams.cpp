#include "cli/import/syntax/nginx_values.hpp"
#include "cli/import/write/toml_text.hpp"
#include "cli/import/write/write_toml.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace weir::cli::nginx {

namespace {

constexpr std::chrono::seconds kResponseTimeout{60};  // nginx's default of proxy_read_timeout
constexpr std::uint64_t kMostFailures = 1'000;
constexpr std::uint64_t kMostIdle = 65'536;

std::string write_server(const UpstreamServer& server, bool tls) {
  const auto address = toml_string((tls ? "https://" : "") + server.address);
  TomlPairs pairs{{"address", address}};
  if (server.weight != 1) pairs.emplace_back("weight", std::to_string(server.weight));
  if (server.max_in_flight != 0) pairs.emplace_back("max_in_flight", std::to_string(server.max_in_flight));
  return pairs.size() == 1 ? address : inline_table(pairs);
}

std::string write_servers(const std::vector<UpstreamServer>& servers, bool tls) {
  std::string list = "[";
  for (const auto& server : servers) {
    if (list.size() > 1) list += ", ";
    list += write_server(server, tls);
  }
  return list + "]";
}

// Adds the keys that an upstream block of nginx sets.
void add_group(const Upstream& group, TomlPairs& lines) {
  if (group.servers.size() > 1) lines.emplace_back("balance", toml_string(group.balance));
  if (group.servers.size() > 1 && !group.hash_key.empty())
    lines.emplace_back("hash_key", text_list(group.hash_key));
  if (group.max_idle) lines.emplace_back("max_idle", std::to_string(std::min(*group.max_idle, kMostIdle)));
  if (!group.failures && !group.fail_timeout) return;
  TomlPairs eject;
  if (group.failures)  // nginx's value 0 means that it never ejects the server
    eject.emplace_back(
        "failures",
        std::to_string(*group.failures == 0 ? kMostFailures : std::min(*group.failures, kMostFailures)));
  const auto time = group.fail_timeout.value_or(std::chrono::seconds(10));
  if (time.count() > 0) {
    eject.emplace_back("least", toml_time(time));
    eject.emplace_back("most", toml_time(time));
  }
  lines.emplace_back("eject", inline_table(eject));
}

void add_tuning(const Tuning& tuning, bool tls, std::optional<std::chrono::milliseconds> idle,
                TomlPairs& lines) {
  TomlPairs timeouts;
  if (tuning.connect) timeouts.emplace_back("connect", toml_time(*tuning.connect));
  timeouts.emplace_back("response", toml_time(tuning.response.value_or(kResponseTimeout)));
  if (idle && idle->count() > 0) timeouts.emplace_back("idle", toml_time(*idle));
  lines.emplace_back("timeouts", inline_table(timeouts));
  TomlPairs retry;
  if (!tuning.attempts.empty()) retry.emplace_back("attempts", tuning.attempts);
  if (!tuning.retry_on.empty()) retry.emplace_back("on", text_list(tuning.retry_on));
  if (!retry.empty()) lines.emplace_back("retry", inline_table(retry));
  if (!tls) return;
  TomlPairs files;
  if (!tuning.verify) files.emplace_back("verify", "false");
  for (const auto& [key, file] : {std::pair("ca", tuning.ca), std::pair("server_name", tuning.name),
                                  std::pair("cert", tuning.cert), std::pair("key", tuning.key)})
    if (!file.empty()) files.emplace_back(key, toml_string(file));
  if (!files.empty()) lines.emplace_back("tls", inline_table(files));
}

std::string write_upstream(const Configuration& configuration, const WeirUpstream& upstream) {
  const bool tls = upstream.scheme == "https" || upstream.scheme == "grpcs";
  const auto found = configuration.upstreams.find(upstream.source);
  const bool is_group = found != configuration.upstreams.end();
  TomlPairs lines{{"name", toml_string(upstream.name)}};
  lines.emplace_back("servers", is_group ? write_servers(found->second.servers, tls)
                                         : write_servers({{.address = upstream.source}}, tls));
  if (upstream.scheme == "grpc") lines.emplace_back("protocol", toml_string("h2c"));
  if (upstream.scheme == "grpcs") lines.emplace_back("protocol", toml_string("h2"));
  if (is_group) add_group(found->second, lines);
  add_tuning(upstream.tuning, tls, is_group ? found->second.idle : std::nullopt, lines);
  return "\n[[upstream]]" + (is_group ? "  # " + found->second.position.text() : std::string()) + "\n" +
         lines_of(lines);
}

}  // namespace

std::string write_upstreams(const Configuration& configuration, const Layout& layout) {
  std::string text;
  for (const auto& upstream : layout.upstreams) text += write_upstream(configuration, upstream);
  return text;
}

}  // namespace weir::cli::nginx
