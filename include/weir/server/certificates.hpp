// The certificates of TLS listeners. weir reads changed files while it runs, so a renewed certificate needs
// no restart.
#pragma once

#include "weir/admin/figures.hpp"
#include "weir/base/result.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
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

class ListenerCertificates {
 public:
  // Reads the files of a listener. `older`: the same listener's certificates before a reload; may be null.
  // TLS sessions stay valid if the lifetime of tickets did not change. The error names the file.
  [[nodiscard]] static base::Result<ListenerCertificates> read(const net::TlsSettings& settings,
                                                               const ListenerCertificates* older = nullptr);

  [[nodiscard]] const net::TlsSettings& settings() const noexcept { return settings_; }

  [[nodiscard]] SSL_CTX* context() const noexcept { return context_.get(); }
  // Reads the files again if one has changed since the last reading, and returns true if so. After an error
  // the old certificates stay in use, and the same files are not read again.
  [[nodiscard]] base::Result<bool> look();

 private:
  ListenerCertificates(net::TlsSettings settings, std::shared_ptr<net::TicketKeys> tickets);
  [[nodiscard]] net::FileStamps stamps() const;
  [[nodiscard]] std::optional<std::string> missing_file() const;

  net::TlsSettings settings_;
  std::shared_ptr<net::TicketKeys> tickets_;  // shared by all contexts, so sessions survive a renewal
  net::FileStamps stamps_;
  net::TlsContext context_;
};

// The certificates of all listeners. Belongs to the main thread.
class CertificateWatch {
 public:
  // Receives a listener's number and its new context, which this object owns.
  using Renew = std::function<void(std::size_t listener, SSL_CTX* fresh)>;

  // `log` outlives this object.
  CertificateWatch(net::Executor executor, log::Log& log, Renew renew)
      : timer_(executor), log_(log), renew_(std::move(renew)) {}

  // The certificates of a listener; nullopt if it does not use TLS.
  using Shown = std::optional<ListenerCertificates>;
  // Reads the certificates of a listener. `number`: the listener that a reload replaces; nullopt if there is
  // none. The error says what is wrong with a file.
  [[nodiscard]] base::Result<Shown> read(const net::ListenerSettings& settings,
                                         std::optional<std::size_t> number = std::nullopt) const;
  // Stores the certificates of the listener, if there are any. The caller hands the context to the workers.
  void show(std::size_t number, const net::ListenerSettings& settings, Shown shown);
  void forget(std::size_t number) { watched_.erase(number); }

  // Returns the listener's TLS context, which this object owns; null for plain HTTP.
  [[nodiscard]] SSL_CTX* context(std::size_t number) const noexcept;
  // Reads changed files; new connections use them. Faulty files change nothing, and a log line reports them.
  void look();
  // Repeats look() with this period from now on; 0: never.
  void look_every(base::Duration period);
  [[nodiscard]] admin::TlsFigures figures() const;

 private:
  struct Watched {
    std::string address;  // as configured
    ListenerCertificates certificates;
  };
  void warn_of(const ListenerCertificates& certificates);

  net::Timer timer_;
  log::Log& log_;
  Renew renew_;
  std::map<std::size_t, Watched> watched_;  // by the listener's number
  std::uint64_t renewed_ = 0;
  std::uint64_t faulty_ = 0;
};

// Returns a warning if a certificate has expired or expires within two weeks. `who`: who would reject it.
[[nodiscard]] std::optional<std::string> warn_of_expiry(const std::string& file, const std::string& who,
                                                        std::chrono::sys_seconds not_after,
                                                        std::chrono::sys_seconds now);
// Returns warnings about certificates that expire within two weeks or that no client can get, and about OCSP
// responses that are not stapled. `now`: the system's clock.
[[nodiscard]] std::vector<std::string> find_warnings(const net::TlsSettings& settings,
                                                     const std::vector<net::CertificateState>& states,
                                                     std::chrono::sys_seconds now);
// Does the same for the listeners' files as they are now. Skips files that cannot be read.
[[nodiscard]] std::vector<std::string> find_warnings(const std::vector<net::ListenerSettings>& listeners,
                                                     std::chrono::sys_seconds now);

}  // namespace weir::server
