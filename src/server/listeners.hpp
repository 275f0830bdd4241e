// The addresses where weir listens: the sockets of every worker and their certificates. Belongs to the main
// thread.
#pragma once

#include "server/process/worker_thread.hpp"

#include "weir/base/result.hpp"
#include "weir/config/settings.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/listener_settings.hpp"
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

  // Returns the sockets that another process or systemd left for the address. If there are none, weir opens
  // its own.
  using InheritedSockets = std::function<std::vector<net::ListeningSocket>(const base::Endpoint& address)>;

  // `workers` and `log` outlive this object.
  Listeners(net::Executor executor, const Workers& workers, log::Log& log);
  // Returns true if another process owns the file of a unix socket at the address and removes it.
  using IsLent = std::function<bool(const base::Endpoint& address)>;
  void inherit(InheritedSockets inherited_sockets, IsLent is_lent) {
    inherited_sockets_ = std::move(inherited_sockets);
    is_lent_ = std::move(is_lent);
  }

  // A listener that prepare() has made ready.
  struct Wanted {
    net::ListenerSettings settings;
    std::optional<std::size_t> number;          // of the listener that is there already
    std::vector<net::ListeningSocket> sockets;  // of a new listener: at least one for each worker
    std::vector<net::ListeningSocket> copies;   // of the sockets, to hand to a later process
    CertificateWatch::Shown shown;
    bool changed = true;  // differs from the listener before
  };
  // Opens the sockets of new listeners, and reads new certificates. Present listeners do not change. The
  // error says what failed and for which listener.
  [[nodiscard]] base::Result<std::vector<Wanted>> prepare(const config::Settings& settings) const;
  // Makes these the only listeners. `most_sessions`: connections for each worker. Returns the changes in
  // words.
  std::vector<std::string> put_in_force(std::vector<Wanted> wanted, std::size_t most_sessions);

  // Returns every socket by the listener's address as configured. They stay open until close().
  [[nodiscard]] std::vector<std::pair<std::string, std::vector<int>>> sockets() const;
  // Takes over a connection of another process. If no listener has its address now, another listener serves
  // one request on it.
  void adopt(upgrade::ReceivedConnection arrived);
  // Closes this object's sockets. Only the workers' own sockets remain.
  void close();
  // Does the same when weir stops listening for good, and removes the files of unix sockets.
  void end();

  void look_at_certificates() { certificates_.look(); }
  void look_at_certificates_every(base::Duration period) { certificates_.look_every(period); }
  [[nodiscard]] admin::TlsFigures certificates() const { return certificates_.figures(); }

 private:
  struct Listener {
    std::size_t number;
    net::ListenerSettings settings;
    std::vector<net::ListeningSocket> sockets{};  // shared with the workers, to be handed on
    std::string name{};  // address with the actual port; kept after the sockets are closed
  };

  // Prepares one listener, except for what stays. The error is that of prepare() above.
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
  std::size_t next_ = 0;  // number of the next new listener
  std::size_t adopter_ = 0;
  std::size_t most_sessions_ = 1;
};

}  // namespace weir::server
