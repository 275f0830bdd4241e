// The listeners of weir: the sockets of every worker and their certificates. Program owns the object, which
// belongs to the main thread.
#pragma once

#include "server/process/worker_thread.hpp"

#include "weir/base/result.hpp"
#include "weir/config/settings.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/listener_settings.hpp"
#include "weir/proxy/permit_count.hpp"
#include "weir/server/certificates.hpp"
#include "weir/upgrade/connection_transfer.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::server {

class Listeners {
 public:
  using Workers = std::vector<std::unique_ptr<WorkerThread>>;

  // Returns the sockets for the address that come from the old process of an upgrade or from systemd. If
  // there are none, weir opens its own sockets.
  using InheritedSockets = std::function<std::vector<net::ListeningSocket>(const base::Endpoint& address)>;

  // `workers` and `log` must outlive this object.
  Listeners(net::Executor executor, const Workers& workers, log::Log& log,
            std::shared_ptr<const net::Challenges> challenges);
  // Returns true if another process owns the file of the unix socket at this address. Then only that process
  // removes the file.
  using IsLent = std::function<bool(const base::Endpoint& address)>;
  void inherit(InheritedSockets inherited_sockets, IsLent is_lent) {
    inherited_sockets_ = std::move(inherited_sockets);
    is_lent_ = std::move(is_lent);
  }

  // A listener that prepare() has made ready for activate().
  struct Wanted {
    net::ListenerSettings settings;
    // Number of the present listener at this address; nullopt if the listener is new.
    std::optional<std::size_t> number;
    // If the listener is new, at least one socket for each worker; otherwise empty.
    std::vector<net::ListeningSocket> sockets;
    // Copies of `sockets`, for an upgrade to hand to the new process.
    std::vector<net::ListeningSocket> copies;
    CertificateWatch::Shown shown;
    // true if the listener is new, or if its settings differ from those of the present listener
    bool changed = true;
  };
  // Opens the sockets of new listeners, and reads changed certificates. Does not change present listeners.
  // The error names the listener and says what failed.
  [[nodiscard]] base::Result<std::vector<Wanted>> prepare(const config::Settings& settings) const;
  // Replaces all listeners with `wanted`. `most_sessions`: the largest number of connections of each worker.
  // Returns the changes in words.
  std::vector<std::string> activate(std::vector<Wanted> wanted, std::size_t most_sessions);

  // Returns each listener's configured address with its sockets. The sockets stay open until close().
  [[nodiscard]] std::vector<std::pair<std::string, std::vector<int>>> sockets() const;
  // Takes over a connection that another process has accepted. If there is no longer a listener with the
  // connection's address, another listener serves one last request on the connection.
  void adopt(upgrade::ReceivedConnection arrived);
  // Closes this object's copies of the sockets. The workers' sockets stay open.
  void close();
  // Closes the sockets like close(), and removes the files of unix sockets. Must be called when weir stops
  // listening and no process has taken over the listeners.
  void end();

  void reread_certificates() { certificates_.reread(); }
  void reread_certificates_every(base::Duration period) { certificates_.check_every(period); }
  [[nodiscard]] admin::TlsFigures certificates() const { return certificates_.figures(); }

 private:
  struct Listener {
    std::size_t number;
    net::ListenerSettings settings;
    // Copies of the workers' sockets, for an upgrade to hand to the new process.
    std::vector<net::ListeningSocket> sockets{};
    std::string name{};  // address with the actual port; stays valid after the sockets are closed
    // The open permits of the listener's askers. Shared with the workers.
    std::shared_ptr<proxy::PermitCount> open_permits = std::make_shared<proxy::PermitCount>();
  };

  // Prepares one listener for the public prepare(). Opens sockets only if the listener is new. The error says
  // why this failed.
  [[nodiscard]] base::Result<void> prepare(Wanted& wanted) const;
  [[nodiscard]] base::Result<std::vector<net::ListeningSocket>> open(const base::Endpoint& address) const;
  [[nodiscard]] proxy::AcceptorSettings acceptor(const Listener& listener) const;
  void begin(Listener& listener, std::vector<net::ListeningSocket> sockets);
  void remove_file(const Listener& listener) const;
  void leave(const Listener& listener);

  const Workers& workers_;
  log::Log& log_;
  CertificateWatch certificates_;
  std::vector<Listener> listeners_;
  InheritedSockets inherited_sockets_;
  IsLent is_lent_;
  std::size_t next_ = 0;     // number for the next new listener
  std::size_t adopter_ = 0;  // selects the worker for the next adopted connection, in rotation
  std::size_t most_sessions_ = 1;
};

}  // namespace weir::server
