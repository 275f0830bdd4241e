// The whole configuration as C++ values. weir reads and checks the configuration once. Afterwards the values
// are immutable, and all workers share them.
#pragma once

#include "weir/acme/settings.hpp"
#include "weir/admin/alert_settings.hpp"
#include "weir/base/siphash.hpp"
#include "weir/http/cors.hpp"
#include "weir/log/log.hpp"
#include "weir/log/span_exporter.hpp"
#include "weir/net/file_stamp.hpp"
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

namespace weir::config {

struct AdminSettings {
  std::optional<base::Endpoint> address;  // absent: there is no admin listener
  std::string token;                      // empty: requests need no token
  std::size_t top = 64;                   // longest list of top clients of a rule; 0: weir counts no clients
};

struct LogSettings {
  std::string access = "-";                                 // a file name, "-" for standard output, or "off"
  observe::LogFields fields = observe::LogFields::usual();  // the fields of the access log
  log::LogLevel level = log::LogLevel::Info;
};

struct StateSettings {
  std::size_t max_keys = 1'000'000;
  std::string snapshot;  // a file name; empty: no snapshot is saved
  std::optional<redis::RedisSettings> redis;
  // The secret key of the digests that stand for clients in Redis. Empty: weirs that share a Redis agree on a
  // random secret (redis::SharedSecret).
  std::string key_secret;
  // Number of weirs that share the Redis. While Redis is away, each weir divides its limits by this number.
  unsigned replicas = 1;
};

// Describes a setting that is allowed but probably not intended.
struct Warning {
  std::string where;  // "weir.toml:14", or only "weir.toml"
  std::string what;
};

// Maps the name of a thing in the configuration, such as `listener 127.0.0.1:80`, to its location, such as
// "weir.toml:3". Later messages about the thing show the location.
using Locations = std::map<std::string, std::string>;

// A file whose content is part of the configuration.
struct WatchedFile {
  std::string path;
  net::FileStamp stamp;  // taken before weir read the file
};

struct Settings {
  proxy::ServerSettings server;
  std::optional<acme::Settings> acme{};
  std::vector<net::ListenerSettings> listeners;
  AdminSettings admin;
  LogSettings log;
  std::optional<log::TracingSettings> tracing;  // absent: weir exports no spans
  std::optional<http::CorsSettings> cors;
  policy::ClientSettings client;
  StateSettings state;
  std::vector<upstream::UpstreamSettings> upstreams;
  std::vector<policy::Route> routes;
  policy::TierPriorities tier_priorities;
  std::vector<policy::Rule> rules;
  std::vector<admin::AlertSettings> alerts;
  std::vector<Warning> warnings;
  Locations locations;
  // The configuration file, the keys file, keys of tokens and geographic databases. TLS files are not in this
  // list, because weir watches them anyway (ServerSettings::certificate_check).
  std::vector<WatchedFile> files;
  std::string keys_file;  // path of the file of [client] keys; empty: there is none
};

// Contains all mistakes of a configuration, one line each: "FILE:LINE: KEY: what was found; what was
// expected".
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(std::vector<std::string> mistakes, std::vector<WatchedFile> files = {});
  [[nodiscard]] const std::vector<std::string>& mistakes() const noexcept { return mistakes_; }
  // Returns the files that the configuration names, as in Settings::files. weir must watch them, too, because
  // the mistake may be in one of them.
  [[nodiscard]] const std::vector<WatchedFile>& files() const noexcept { return files_; }

 private:
  std::vector<std::string> mistakes_;
  std::vector<WatchedFile> files_;
};

// Reads and checks `file` and the files that it names, such as the keys file and certificates. Throws
// ConfigError with all mistakes.
[[nodiscard]] Settings load_settings(const std::string& file);

// Reads and checks a text in memory, like load_settings(). Throws ConfigError with all mistakes. `file`: the
// name that messages give to the text. Relative paths start in the folder of `file`.
[[nodiscard]] Settings parse_settings(std::string_view text, const std::string& file);

// Returns the certificates that weir orders, each once, as lists of their DNS names.
[[nodiscard]] std::vector<acme::Names> acme_certificates(const Settings& settings);

// Returns what `weir check` prints: the routes in order, each with the rules that apply to it.
[[nodiscard]] std::string describe(const Settings& settings);

}  // namespace weir::config
