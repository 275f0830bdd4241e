// What the TLS listeners show, read anew when a file changes: renewing a certificate takes no restart.
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

namespace weir::app {

class ListenerCertificates {
 public:
  // `older`: of the same listener before a reload; may be null. Sessions outlive it where the life of their
  // tickets did not change. An error names the file.
  [[nodiscard]] static base::Result<ListenerCertificates> read(const net::TlsSettings& settings,
                                                               const ListenerCertificates* older = nullptr);

  [[nodiscard]] const net::TlsSettings& settings() const noexcept { return settings_; }

  [[nodiscard]] SSL_CTX* context() const noexcept { return context_.get(); }
  // Reads the files anew if any has changed since they were last read, and tells whether. With an error
  // nothing has changed, and the same files are not read again.
  [[nodiscard]] base::Result<bool> look();

 private:
  ListenerCertificates(net::TlsSettings settings, std::shared_ptr<net::TicketKeys> tickets);
  [[nodiscard]] net::FileStamps stamps() const;
  [[nodiscard]] std::optional<std::string> missing_file() const;

  net::TlsSettings settings_;
  std::shared_ptr<net::TicketKeys> tickets_;  // the same for all contexts: sessions outlive a renewal
  net::FileStamps stamps_;
  net::TlsContext context_;
};

// All listeners' certificates. Belongs to the main thread.
class CertificateWatch {
 public:
  // Told of a listener's number and its new context, which is lent.
  using Renew = std::function<void(std::size_t listener, SSL_CTX* fresh)>;

  // `log` outlives it.
  CertificateWatch(net::Executor executor, Log& log, Renew renew)
      : timer_(executor), log_(log), renew_(std::move(renew)) {}

  // What a listener shows, if it speaks TLS. An error says what is wrong with any of the files.
  using Shown = std::optional<ListenerCertificates>;
  // `number`: of the listener that was there before; nullopt: none.
  [[nodiscard]] base::Result<Shown> read(const net::ListenerSettings& settings,
                                         std::optional<std::size_t> number = std::nullopt) const;
  // The listener shows this from now on, where it is not empty; whoever calls makes it known.
  void show(std::size_t number, const net::ListenerSettings& settings, Shown shown);
  void forget(std::size_t number) { watched_.erase(number); }

  // Of the listener's TLS, lent; null for plain HTTP.
  [[nodiscard]] SSL_CTX* context(std::size_t number) const noexcept;
  // Files that changed are in force for connections that come from now on; faulty ones change nothing, and
  // the log says so.
  void look();
  // Again and again, in place of what was asked for before; 0 for never.
  void look_every(base::Duration period);
  [[nodiscard]] admin::TlsFigures figures() const;

 private:
  struct Watched {
    std::string address;  // as configured
    ListenerCertificates certificates;
  };
  void warn_of(const ListenerCertificates& certificates);

  net::Timer timer_;
  Log& log_;
  Renew renew_;
  std::map<std::size_t, Watched> watched_;  // by the listener's number
  std::uint64_t renewed_ = 0;
  std::uint64_t faulty_ = 0;
};

// Returns a warning of a certificate that has expired or will within two weeks. `who` would refuse it.
[[nodiscard]] std::optional<std::string> doubt_of_end(const std::string& file, const std::string& who,
                                                      std::chrono::sys_seconds not_after,
                                                      std::chrono::sys_seconds now);
// What a person should do about a certificate: nothing when it is good for two weeks more and some client can
// get it. `now`: of the system's clock.
[[nodiscard]] std::vector<std::string> find_doubts(const net::TlsSettings& settings,
                                                   const std::vector<net::CertificateState>& states,
                                                   std::chrono::sys_seconds now);
// The same of what listeners would show, of files as they are now; nothing of those that cannot be read.
[[nodiscard]] std::vector<std::string> find_doubts(const std::vector<net::ListenerSettings>& listeners,
                                                   std::chrono::sys_seconds now);

}  // namespace weir::app
