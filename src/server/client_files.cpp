#include "weir/server/client_files.hpp"

#include "weir/server/certificates.hpp"

#include <algorithm>
#include <utility>

namespace weir::server {

namespace {

std::chrono::sys_seconds now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::optional<std::string> warning(const ClientFiles::TlsUse& use, std::chrono::sys_seconds at) {
  if (!use.own.not_after) return std::nullopt;
  return warn_of_expiry(use.tls.cert, use.who(), *use.own.not_after, at);
}

void add(std::vector<ClientFiles::TlsUse>& uses, ClientFiles::TlsUse use) {
  const auto same = [&](const ClientFiles::TlsUse& other) { return other.is_same(use); };
  // Skips `use` if the list has the same settings already. For example, two webhooks may trust the same
  // authorities.
  if (std::any_of(uses.begin(), uses.end(), same)) return;
  use.read = net::stamps_of(use.tls);
  uses.push_back(std::move(use));
}

}  // namespace

std::string ClientFiles::TlsUse::who() const {
  switch (kind) {
    case Kind::Upstream:
      return "upstream \"" + name + "\"";
    case Kind::Webhooks:
      return "webhooks";
    case Kind::Redis:
      break;
  }
  return "redis";
}

std::vector<ClientFiles::TlsUse> ClientFiles::uses_in(const config::Settings& settings) {
  std::vector<TlsUse> uses;
  for (const auto& upstream : settings.upstreams)
    if (std::any_of(upstream.servers.begin(), upstream.servers.end(),
                    [](const upstream::ServerSettings& server) { return server.tls; }))
      add(uses, {.kind = Kind::Upstream, .name = upstream.name, .tls = upstream.tls});
  for (const auto& alert : settings.alerts)
    if (alert.webhook.tls) add(uses, {.kind = Kind::Webhooks, .name = {}, .tls = {.ca = alert.webhook.ca}});
  if (settings.state.redis && settings.state.redis->tls) {
    const auto& tls = *settings.state.redis->tls;
    add(uses, {.kind = Kind::Redis,
               .name = {},
               .tls = {.ca = tls.ca, .cert = tls.cert, .key = tls.key, .verify = tls.verify}});
  }
  return uses;
}

void ClientFiles::watch(std::vector<TlsUse> uses) {
  for (auto& use : uses) {
    const auto before =
        std::find_if(uses_.begin(), uses_.end(), [&](const TlsUse& other) { return other.is_same(use); });
    if (before != uses_.end()) {
      use = std::move(*before);
      continue;
    }
    if (use.tls.cert.empty()) continue;
    if (auto read = net::try_files(use.tls)) use.own = *read;
    warn_of(use);
  }
  uses_ = std::move(uses);
}

// Reads the files' stamps before the files. So if a file is written during the reading, the next call finds
// another stamp.
std::vector<std::string> ClientFiles::reread() {
  std::vector<TlsUse*> changed;
  for (auto& use : uses_) {
    auto found = net::stamps_of(use.tls);
    if (found == use.read && use.fault.empty()) continue;
    // The files have changed, so weir logs a fault again, even if the fault is the same.
    if (found != use.read) use.fault.clear();
    use.read = std::move(found);
    if (const auto tried = net::try_files(use.tls))
      changed.push_back(&use);
    else
      refuse(use, tried.error().message);
  }
  std::vector<std::string> lines;
  if (changed.empty()) return lines;
  const auto renewed = renew_({changed.begin(), changed.end()});
  for (auto* use : changed) {
    if (!renewed) {
      refuse(*use, renewed.error().message);
      continue;
    }
    use->fault.clear();
    if (const auto read = net::try_files(use->tls)) use->own = *read;
    ++renewed_;
    log_.info(lines.emplace_back("TLS to " + use->who() + ": reloaded the files"));
    warn_of(*use);
  }
  return lines;
}

// Stores why weir cannot use the files, and logs the reason once. Each reread() tries these files again.
void ClientFiles::refuse(TlsUse& use, const std::string& why) {
  if (use.fault == why) return;
  use.fault = why;
  ++faulty_;
  log_.warning("TLS to " + use.who() +
               ": cannot load the changed files; weir keeps the previous ones: " + why);
}

void ClientFiles::warn_of(const TlsUse& use) {
  if (const auto what = warning(use, now())) log_.warning(*what);
}

void ClientFiles::check_every(base::Duration period) {
  if (period.count() == 0) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(period);
  timer_.async_wait([this, period](const net::ErrorCode& error) {
    if (error) return;
    (void)reread();
    check_every(period);
  });
}

void ClientFiles::add_to(admin::TlsFigures& figures) const {
  figures.renewed += renewed_;
  figures.faulty += faulty_;
  figures.watched += uses_.size();
  for (const auto& use : uses_)
    if (use.own.not_after)
      figures.own.push_back({.shown_to = use.who(), .file = use.tls.cert, .not_after = *use.own.not_after});
}

std::vector<std::string> warn_of_own_certificates(const config::Settings& settings,
                                                  std::chrono::sys_seconds at) {
  std::vector<std::string> warnings;
  for (auto& use : ClientFiles::uses_in(settings)) {
    if (use.tls.cert.empty()) continue;
    if (const auto read = net::try_files(use.tls)) use.own = *read;
    if (auto what = warning(use, at)) warnings.push_back(std::move(*what));
  }
  return warnings;
}

}  // namespace weir::server
