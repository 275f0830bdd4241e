// The whole configuration as values: read once, checked, then immutable and shared by all workers.
#pragma once

#include "weir/admin/alert_settings.hpp"
#include "weir/base/siphash.hpp"
#include "weir/log/log.hpp"
#include "weir/net/listener_settings.hpp"
#include "weir/observe/access_record.hpp"
#include "weir/policy/identity.hpp"
#include "weir/policy/priority.hpp"
#include "weir/policy/route.hpp"
#include "weir/policy/rule.hpp"
#include "weir/proxy/server_settings.hpp"
#include "weir/redis/redis_settings.hpp"
#include "weir/upstream/upstream_settings.hpp"

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

struct AdminSettings {
  std::optional<base::Endpoint> address;  // absent: no admin listener
  std::string token;                      // empty: none asked
  std::size_t top = 64;                   // clients that are counted of each rule, twice; 0: none
};

struct LogSettings {
  std::string access = "-";                                 // a file, "-" standard output, "off"
  observe::LogFields fields = observe::LogFields::usual();  // of the access log
  LogLevel level = LogLevel::Info;
};

struct StateSettings {
  std::size_t max_keys = 1'000'000;
  std::string snapshot;  // a file; empty: none
  std::optional<redis::RedisSettings> redis;
  std::string key_secret;  // empty: random, and a warning where rules share a Redis
  unsigned replicas = 1;   // weirs that share the Redis; what the local fallback divides by
};

// What is allowed and probably not meant.
struct Warning {
  std::string where;  // "weir.toml:14", or the file alone
  std::string what;
};

// Where in the configuration what weir may have to speak of begins, by what it calls it then: "weir.toml:3"
// of `listener 127.0.0.1:80`.
using Places = std::map<std::string, std::string>;

struct Settings {
  proxy::ServerSettings server;
  std::vector<net::ListenerSettings> listeners;
  AdminSettings admin;
  LogSettings log;
  policy::ClientSettings client;
  StateSettings state;
  std::vector<upstream::UpstreamSettings> upstreams;
  std::vector<policy::Route> routes;
  policy::TierPriorities tier_priorities;
  std::vector<policy::Rule> rules;
  std::vector<admin::AlertSettings> alerts;
  std::vector<Warning> warnings;
  Places places;
};

// What is wrong with a configuration, all of it: one line for each mistake,
// "FILE:LINE: KEY: what was found; what was expected".
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(std::vector<std::string> mistakes);
  [[nodiscard]] const std::vector<std::string>& mistakes() const noexcept { return mistakes_; }

 private:
  std::vector<std::string> mistakes_;
};

// Reads and checks FILE and what it names (keys file, certificates' presence). Throws ConfigError with every
// mistake found, not only the first.
[[nodiscard]] Settings load_settings(const std::string& file);

// The same for text that stands in memory; `file` is only a name for the messages and the base of relative
// paths.
[[nodiscard]] Settings parse_settings(std::string_view text, const std::string& file);

// For `weir check`: routes in order and the rules that apply to each.
[[nodiscard]] std::string describe(const Settings& settings);

}  // namespace weir::app
