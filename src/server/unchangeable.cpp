#include "server/config_snapshots.hpp"

#include "weir/config/settings_needs.hpp"
#include "weir/proxy/worker.hpp"

#include <tuple>

namespace weir::server {

namespace {

std::string word(const std::string& text) {
  return "\"" + text + "\"";
}
std::string word(std::size_t number) {
  return std::to_string(number);
}
std::string word(const std::optional<base::Endpoint>& address) {
  return address ? word(address->to_string()) : "none";
}

class Comparison {
 public:
  explicit Comparison(const std::string& file) : file_(file) {}

  template <class Value>
  void same(const char* key, const Value& running, const Value& wanted) {
    if (!(running == wanted)) mistake(key, "found " + word(wanted) + "; weir runs with " + word(running));
  }
  // Compares values without showing them, because they must not appear in the log.
  template <class Value>
  void same_hidden(const char* key, const Value& running, const Value& wanted) {
    if (!(running == wanted)) mistake(key, "found a different value than the running one");
  }
  void mistake(const char* key, const std::string& what) {
    mistakes_.push_back(file_ + ": " + key + ": " + what +
                        ", but this cannot change while weir runs; restart weir to change it");
  }
  [[nodiscard]] std::vector<std::string> mistakes() && { return std::move(mistakes_); }

 private:
  const std::string& file_;
  std::vector<std::string> mistakes_;
};

// Returns true if both configurations export spans in the same way. Their sampling may differ.
bool is_same_export(const std::optional<log::TracingSettings>& running,
                    const std::optional<log::TracingSettings>& wanted) {
  if (!running || !wanted) return !running && !wanted;
  const auto parts = [](const log::TracingSettings& of) {
    return std::tie(of.endpoint, of.headers, of.ca, of.service, of.max_queue, of.interval, of.timeout);
  };
  return parts(*running) == parts(*wanted);
}

}  // namespace

std::vector<std::string> find_unchangeable(const config::Settings& running, const config::Settings& wanted,
                                           const std::string& file) {
  Comparison comparison(file);
  comparison.same("server.workers", std::size_t{running.server.workers}, std::size_t{wanted.server.workers});
  if (proxy::Worker::block_size(running.server) != proxy::Worker::block_size(wanted.server))
    comparison.same("server.max_head", std::size_t{running.server.max_head},
                    std::size_t{wanted.server.max_head});
  comparison.same("admin.address", running.admin.address, wanted.admin.address);
  comparison.same_hidden("admin.token", running.admin.token, wanted.admin.token);
  comparison.same("admin.top", running.admin.top, wanted.admin.top);
  comparison.same_hidden("log.fields", running.log.fields, wanted.log.fields);
  comparison.same("log.access", running.log.access, wanted.log.access);
  if (running.tracing.has_value() != wanted.tracing.has_value())
    comparison.mistake("tracing", wanted.tracing ? "found the table; weir runs without it"
                                                 : "the table is missing; weir runs with it");
  else if (!is_same_export(running.tracing, wanted.tracing))
    comparison.mistake("tracing",
                       "found another endpoint, headers, ca, service, max_queue, interval or timeout");
  comparison.same("state.memory.max_keys", running.state.max_keys, wanted.state.max_keys);
  comparison.same("state.memory.snapshot", running.state.snapshot, wanted.state.snapshot);
  comparison.same_hidden("state.key_secret", running.state.key_secret, wanted.state.key_secret);
  comparison.same_hidden("state.redis", running.state.redis, wanted.state.redis);
  if (!config::needs_redis(running) && config::needs_redis(wanted))
    comparison.mistake("rule.store", "found the first rule that is kept in Redis");
  if (!config::takes_leases(running) && config::takes_leases(wanted))
    comparison.mistake("rule.lease", "found the first rule with a lease");
  return std::move(comparison).mistakes();
}

}  // namespace weir::server
