#include "server/program.hpp"

#include "weir/config/settings_needs.hpp"

namespace weir::server {

base::Result<ConfigSnapshots::Draft> Program::make_config_snapshot(
    const config::Settings& settings, std::vector<upstream::ResolvedUpstream> upstreams) {
  auto draft = config_snapshots_.make(settings, std::move(upstreams), names_);
  if (draft) draft->config_snapshot->config.names_agreed = names_agreed_;
  return draft;
}

// Starts to read the secret that all weir processes with one Redis share. Does nothing if key_secret is set,
// because weir then uses key_secret.
void Program::start_shared_secret() {
  if (!config::needs_redis(initial_settings_) || !initial_settings_.state.key_secret.empty()) return;
  const auto say = [this](redis::LogLevel level, const std::string& line) {
    log_.write(level == redis::LogLevel::Warning ? log::LogLevel::Warning : log::LogLevel::Info, line);
  };
  shared_secret_.emplace(control_.get_executor(), *initial_settings_.state.redis, names_.shared, say,
                         [this](const base::SipKey& secret) { take_secret(secret); });
  shared_secret_->start();
}

// Uses the secret for clients' names in new requests. Present requests keep the old names.
void Program::take_secret(const base::SipKey& secret) {
  if (names_agreed_ && names_.shared == secret) return;
  auto names = names_;
  names.shared = secret;
  const auto config_snapshot = config_snapshots_.activate(config_snapshots_.renamed(names));
  names_ = names;
  names_agreed_ = true;
  for (const auto& worker : workers_) worker->begin(config_snapshot);
}

}  // namespace weir::server
