// The certificates of TLS listeners. weir reads changed certificate files while it runs, so weir can use a
// renewed certificate without a restart.
#pragma once

#include "weir/admin/figures.hpp"
#include "weir/base/result.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/challenges.hpp"
#include "weir/net/file_stamp.hpp"
#include "weir/net/listener_settings.hpp"
#include "weir/net/tls_context.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::server {

// The certificates of one TLS listener, as last read from their files. CertificateWatch owns the object,
// which belongs to the main thread.
class ListenerCertificates {
 public:
  // The pending challenges of certificate authorities; null: the listener answers none. The TLS contexts
  // share the challenges, because a context may outlive this object.
  using Challenges = std::shared_ptr<const net::Challenges>;

  // Reads the certificate and key files of a listener. `older`: the certificates of the listener before a
  // reload; may be null. With `older`, clients can resume their TLS sessions, unless the ticket lifetime has
  // changed. The error names the faulty file.
  [[nodiscard]] static base::Result<ListenerCertificates> read(const net::TlsSettings& settings,
                                                               const ListenerCertificates* older = nullptr,
                                                               Challenges challenges = nullptr);

  [[nodiscard]] const net::TlsSettings& settings() const noexcept { return settings_; }

  [[nodiscard]] SSL_CTX* context() const noexcept { return context_.get(); }
  // Returns the time at which the first revocation list expires; nullopt if there is no list.
  [[nodiscard]] std::optional<std::chrono::sys_seconds> revocations_end() const noexcept {
    return revocations_end_;
  }
  // Reads the listener's files again if a file has changed since the last reading. Returns true if weir uses
  // newly read files. After an error, the old certificates stay in use, and the faulty files are not read
  // again until they change.
  [[nodiscard]] base::Result<bool> reread();

 private:
  ListenerCertificates(net::TlsSettings settings, std::shared_ptr<net::TicketKeys> tickets,
                       Challenges challenges);
  [[nodiscard]] net::FileStamps stamps() const;

  net::TlsSettings settings_;
  // The keys that encrypt session tickets. The old and the new TLS context share the keys, so clients can
  // resume their TLS sessions after a renewal.
  std::shared_ptr<net::TicketKeys> tickets_;
  Challenges challenges_;
  net::FileStamps stamps_;
  net::TlsContext context_;
  std::optional<std::chrono::sys_seconds> revocations_end_;
};

// Watches the certificate files of all listeners. Listeners owns the object, which belongs to the main
// thread.
class CertificateWatch {
 public:
  // Called with a listener's number and its new TLS context. CertificateWatch owns that context.
  using Renew = std::function<void(std::size_t listener, SSL_CTX* fresh)>;

  // `log` must outlive this object.
  CertificateWatch(net::Executor executor, log::Log& log, Renew renew,
                   ListenerCertificates::Challenges challenges = nullptr)
      : timer_(executor), log_(log), renew_(std::move(renew)), challenges_(std::move(challenges)) {}

  // The certificates of a listener; nullopt if the listener does not use TLS.
  using Shown = std::optional<ListenerCertificates>;
  // Reads the certificates of a listener from the files in its settings. `number`: the number of the present
  // listener at the same address, if there is one. The error says which file is faulty, and why.
  [[nodiscard]] base::Result<Shown> read(const net::ListenerSettings& settings,
                                         std::optional<std::size_t> number = std::nullopt) const;
  // Stores `shown` as the certificates of the listener with this number; for plain HTTP, stores nothing. The
  // caller must pass the new TLS context to the workers.
  void show(std::size_t number, const net::ListenerSettings& settings, Shown shown);
  void forget(std::size_t number) { watched_.erase(number); }

  // Returns the listener's TLS context, which this object owns; null for plain HTTP.
  [[nodiscard]] SSL_CTX* context(std::size_t number) const noexcept;
  // Reads the certificate files that have changed, and calls `renew` for their listeners. If a file is
  // faulty, logs a line and keeps the old certificates.
  void reread();
  // From now on, calls reread() once in each `period`. If `period` is 0, stops these calls.
  void check_every(base::Duration period);
  [[nodiscard]] admin::TlsFigures figures() const;

 private:
  struct Watched {
    std::string address;  // the listener's address as configured
    ListenerCertificates certificates;
  };
  void warn_of(const ListenerCertificates& certificates);

  net::Timer timer_;
  log::Log& log_;
  Renew renew_;
  const ListenerCertificates::Challenges challenges_;
  std::map<std::size_t, Watched> watched_;  // the key is the listener's number
  std::uint64_t renewed_ = 0;
  std::uint64_t faulty_ = 0;
};

// Returns a warning if a certificate has expired or expires within two weeks. `who`: text that names the
// peers that will reject the expired certificate.
[[nodiscard]] std::optional<std::string> warn_of_expiry(const std::string& file, const std::string& who,
                                                        std::chrono::sys_seconds not_after,
                                                        std::chrono::sys_seconds now);
// Returns a warning if one of the listener's revocation lists has expired. `end`: the time at which the first
// list expires.
[[nodiscard]] std::optional<std::string> warn_of_revocations(const net::TlsSettings& settings,
                                                             std::optional<std::chrono::sys_seconds> end,
                                                             std::chrono::sys_seconds now);
// Returns warnings about certificates that expire within two weeks or that no client can receive, and about
// OCSP responses that weir does not staple. `now`: the time of the system's clock.
[[nodiscard]] std::vector<std::string> find_warnings(const net::TlsSettings& settings,
                                                     const std::vector<net::CertificateState>& states,
                                                     std::chrono::sys_seconds now);
// Returns the warnings of find_warnings() above for all listeners. Skips files that cannot be read.
[[nodiscard]] std::vector<std::string> find_warnings(const std::vector<net::ListenerSettings>& listeners,
                                                     std::chrono::sys_seconds now);

}  // namespace weir::server
