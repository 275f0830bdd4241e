// The certificate files of connections that weir opens with TLS: to upstreams, webhooks and Redis. weir reads
// changed files while it runs, as it does those of listeners (weir/server/certificates.hpp).
#pragma once

#include "weir/admin/figures.hpp"
#include "weir/base/result.hpp"
#include "weir/config/settings.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/tls_client_files.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weir::app {

// Belongs to the main thread.
class ClientFiles {
 public:
  enum class Kind : std::uint8_t { Upstream, Webhooks, Redis };
  // Settings that name files, and whose they are.
  struct Use {
    Kind kind;
    std::string name;  // of the upstream
    net::TlsClientSettings tls;
    net::FileStamps read{};  // of the files when they were read last
    std::string fault{};     // why the files, as they are now, are not in force; empty: they are
    net::OwnCertificate own{};

    [[nodiscard]] std::string who() const;
    [[nodiscard]] bool is_same(const Use& other) const {
      return kind == other.kind && name == other.name && tls == other.tls;
    }
  };
  // Returns all uses that settings make of such files, with the files' stamps as they are now: to be called
  // before contexts are made of the files.
  [[nodiscard]] static std::vector<Use> uses_in(const Settings& settings);

  // Puts the files of these uses in force for connections that begin from now on. An error says why not.
  using Renew = std::function<base::Result<void>(const std::vector<const Use*>& changed)>;
  // `log` outlives it.
  ClientFiles(net::Executor executor, Log& log, Renew renew)
      : timer_(executor), log_(log), renew_(std::move(renew)) {}

  // Watches the files of these uses. A use that was watched before keeps the stamps of what was read.
  void watch(std::vector<Use> uses);
  // Reads files that changed, and returns a line for each use of them. A faulty file changes nothing: the log
  // names it once, and each later look tries it again.
  std::vector<std::string> look();
  // Looks again and again, in place of what was asked for before; 0 for never.
  void look_every(base::Duration period);
  // Adds what is known of the files to the figures of listeners.
  void add_to(admin::TlsFigures& figures) const;

 private:
  void refuse(Use& use, const std::string& why);
  void warn_of(const Use& use);

  net::Timer timer_;
  Log& log_;
  Renew renew_;
  std::vector<Use> uses_;
  std::uint64_t renewed_ = 0;
  std::uint64_t faulty_ = 0;
};

// Returns a warning of each certificate that weir shows to servers and that has expired or will within two
// weeks. `now`: of the system's clock.
[[nodiscard]] std::vector<std::string> doubt_own_certificates(const Settings& settings,
                                                              std::chrono::sys_seconds now);

}  // namespace weir::app
