// The certificate files of TLS connections that weir opens to upstreams, webhooks and Redis.
//
// weir reads changed files while it runs, as it does for listeners (weir/server/certificates.hpp).
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

namespace weir::server {

// Belongs to the main thread.
class ClientFiles {
 public:
  enum class Kind : std::uint8_t { Upstream, Webhooks, Redis };
  // TLS settings that name files, and their owner.
  struct Use {
    Kind kind;
    std::string name;  // name of the upstream
    net::TlsClientSettings tls;
    net::FileStamps read{};  // stamps at the last reading
    std::string fault{};     // why the present files are not in use; empty: they are
    net::OwnCertificate own{};

    [[nodiscard]] std::string who() const;
    [[nodiscard]] bool is_same(const Use& other) const {
      return kind == other.kind && name == other.name && tls == other.tls;
    }
  };
  // Returns all TLS settings that name files, with the present stamps of the files. Must be called before
  // contexts are made from the files.
  [[nodiscard]] static std::vector<Use> uses_in(const config::Settings& settings);

  // Puts the changed files in use for new connections. The error says why that failed.
  using Renew = std::function<base::Result<void>(const std::vector<const Use*>& changed)>;
  // `log` outlives this object.
  ClientFiles(net::Executor executor, log::Log& log, Renew renew)
      : timer_(executor), log_(log), renew_(std::move(renew)) {}

  // Watches these files. An entry that was watched before keeps its stamps.
  void watch(std::vector<Use> uses);
  // Reads changed files, and returns a line for each use of them. A faulty file changes nothing. The log
  // reports it once, and each later call tries it again.
  std::vector<std::string> look();
  // Repeats look() with this period from now on; 0: never.
  void look_every(base::Duration period);
  // Adds the state of these files to the figures of the listeners.
  void add_to(admin::TlsFigures& figures) const;

 private:
  void refuse(Use& use, const std::string& why);
  void warn_of(const Use& use);

  net::Timer timer_;
  log::Log& log_;
  Renew renew_;
  std::vector<Use> uses_;
  std::uint64_t renewed_ = 0;
  std::uint64_t faulty_ = 0;
};

// Returns a warning for each of weir's own client certificates that has expired or expires within two weeks.
// `now`: the system's clock.
[[nodiscard]] std::vector<std::string> warn_of_own_certificates(const config::Settings& settings,
                                                                std::chrono::sys_seconds now);

}  // namespace weir::server
