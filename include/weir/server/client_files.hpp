// The certificate files of TLS connections that weir opens to upstreams, webhooks and Redis.
//
// weir reads changed files again while it runs. For the files of listeners, see weir/server/certificates.hpp.
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

// Watches the certificate files of weir's own TLS connections, and reads changed files again. Program owns
// the object, which belongs to the main thread.
class ClientFiles {
 public:
  enum class Kind : std::uint8_t { Upstream, Webhooks, Redis };
  // The TLS settings that one part of weir uses: one upstream, the webhooks or Redis. Exists only if the
  // settings name files.
  struct TlsUse {
    Kind kind;
    std::string name;  // name of the upstream; empty for the webhooks and for Redis
    net::TlsClientSettings tls;
    net::FileStamps read{};  // stamps of the files when they were last read
    std::string fault{};     // why weir cannot use the present files; empty if weir uses these files
    net::OwnCertificate own{};

    [[nodiscard]] std::string who() const;
    [[nodiscard]] bool is_same(const TlsUse& other) const {
      return kind == other.kind && name == other.name && tls == other.tls;
    }
  };
  // Returns one TlsUse for each part of weir whose TLS settings name files, with the present stamps of the
  // files. Must be called before TLS contexts are made from the files. If a file changes afterwards, reread()
  // reads it again.
  [[nodiscard]] static std::vector<TlsUse> uses_in(const config::Settings& settings);

  // A callback that makes new connections use the changed files. The error says why the files cannot be used.
  using Renew = std::function<base::Result<void>(const std::vector<const TlsUse*>& changed)>;
  // `log` must outlive this object.
  ClientFiles(net::Executor executor, log::Log& log, Renew renew)
      : timer_(executor), log_(log), renew_(std::move(renew)) {}

  // From now on, watches the files of `uses` instead of the files of the previous call. A TlsUse that was
  // watched before keeps its state, so that reread() still reads a file that changed in between.
  void watch(std::vector<TlsUse> uses);
  // Reads the files that have changed. Returns a line of text for each part of weir (an upstream, the
  // webhooks or Redis) that now uses changed files. If a file is faulty, its old content stays in use. The
  // log reports the fault once, and each later call tries the file again.
  std::vector<std::string> reread();
  // From now on, calls reread() once in each `period`. If `period` is 0, stops these calls.
  void check_every(base::Duration period);
  // Adds the state of these files to `figures`, which already has the listeners' certificates.
  void add_to(admin::TlsFigures& figures) const;

 private:
  void refuse(TlsUse& use, const std::string& why);
  void warn_of(const TlsUse& use);

  net::Timer timer_;
  log::Log& log_;
  Renew renew_;
  std::vector<TlsUse> uses_;
  std::uint64_t renewed_ = 0;
  std::uint64_t faulty_ = 0;
};

// Returns a warning for each of weir's own client certificates that has expired or expires within two weeks.
// `now`: the time of the system's clock.
[[nodiscard]] std::vector<std::string> warn_of_own_certificates(const config::Settings& settings,
                                                                std::chrono::sys_seconds now);

}  // namespace weir::server
