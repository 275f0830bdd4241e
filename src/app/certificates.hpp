// What the TLS listeners show, read anew when a file changes: renewing a certificate takes no restart.
#pragma once

#include "weir/admin/sources.hpp"
#include "weir/app/log.hpp"
#include "weir/base/result.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/listener_settings.hpp"
#include "weir/net/tls_context.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::app {

// Differs after a file was written or replaced, also by way of a symbolic link. A file that is not there is
// all zero.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;
  std::int64_t size = 0;
  bool operator==(const FileStamp&) const = default;
};

class ListenerCertificates {
 public:
  // `settings` outlives it. An error names the file.
  [[nodiscard]] static base::Result<ListenerCertificates> read(const net::TlsSettings& settings);

  [[nodiscard]] SSL_CTX* context() const noexcept { return context_.get(); }
  // Reads the files anew if any has changed since they were last read, and tells whether. With an error
  // nothing has changed, and the same files are not read again.
  [[nodiscard]] base::Result<bool> look();

 private:
  ListenerCertificates(const net::TlsSettings& settings, std::shared_ptr<net::TicketKeys> tickets);
  [[nodiscard]] std::vector<FileStamp> stamps() const;
  [[nodiscard]] std::optional<std::string> missing_file() const;

  const net::TlsSettings* settings_;
  std::shared_ptr<net::TicketKeys> tickets_;  // the same for all contexts: sessions outlive a renewal
  std::vector<FileStamp> stamps_;
  net::TlsContext context_;
};

// All listeners' certificates. Belongs to the main thread.
class CertificateWatch {
 public:
  // Told of a listener's number, from 0, and its new context, which is lent.
  using Renew = std::function<void(std::size_t listener, SSL_CTX* fresh)>;

  // `listeners` and `log` outlive it.
  CertificateWatch(net::Executor executor, const std::vector<net::ListenerSettings>& listeners, Log& log,
                   Renew renew)
      : timer_(executor), listeners_(listeners), log_(log), renew_(std::move(renew)) {}

  // At start: what is wrong with any of the files, or nullopt.
  [[nodiscard]] std::optional<base::Error> read();
  // Of the listener's TLS, lent; null for plain HTTP.
  [[nodiscard]] SSL_CTX* context(std::size_t listener) const noexcept;
  // Files that changed are in force for connections that come from now on; faulty ones change nothing, and
  // the log says so.
  void look();
  // Again and again; 0 for never.
  void look_every(base::Duration period);
  [[nodiscard]] admin::TlsFigures figures() const;

 private:
  void warn_of(std::size_t listener);

  net::Timer timer_;
  const std::vector<net::ListenerSettings>& listeners_;
  Log& log_;
  Renew renew_;
  std::vector<std::optional<ListenerCertificates>> certificates_;  // of each listener; absent: plain HTTP
  std::uint64_t renewed_ = 0;
  std::uint64_t faulty_ = 0;
};

// What a person should do about a certificate: nothing when it is good for two weeks more. `now`: of the
// system's clock.
[[nodiscard]] std::vector<std::string> find_doubts(const net::TlsSettings& settings,
                                                   const std::vector<net::CertificateTimes>& times,
                                                   std::chrono::sys_seconds now);

}  // namespace weir::app
