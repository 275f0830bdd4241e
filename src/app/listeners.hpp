// Where weir listens: which sockets every worker has, and what they show. Belongs to the main thread.
#pragma once

#include "app/certificates.hpp"
#include "app/worker_thread.hpp"

#include "weir/app/log.hpp"
#include "weir/base/result.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/listener_settings.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::app {

class Listeners {
 public:
  using Workers = std::vector<std::unique_ptr<WorkerThread>>;

  // `workers` and `log` outlive it.
  Listeners(net::Executor executor, const Workers& workers, Log& log);

  // A listener as it is to be.
  struct Wanted {
    net::ListenerSettings settings;
    std::optional<std::size_t> number;          // of the one that listens there already
    std::vector<net::ListeningSocket> sockets;  // else: one for each worker
    CertificateWatch::Shown shown;
    bool changed = true;  // from what it was
  };
  // Opens sockets that there are not yet, and reads certificates that are new; nothing changes for those that
  // listen. An error says what could not be done.
  [[nodiscard]] base::Result<std::vector<Wanted>> prepare(
      const std::vector<net::ListenerSettings>& settings) const;
  // These, and no others, from now on. `most_sessions`: of a worker. What was new or is gone, in words.
  std::vector<std::string> put_in_force(std::vector<Wanted> wanted, std::size_t most_sessions);

  void look_at_certificates() { certificates_.look(); }
  void look_at_certificates_every(base::Duration period) { certificates_.look_every(period); }
  [[nodiscard]] admin::TlsFigures certificates() const { return certificates_.figures(); }

 private:
  struct Listener {
    std::size_t number;
    net::ListenerSettings settings;
  };

  [[nodiscard]] base::Result<std::vector<net::ListeningSocket>> open(const base::Endpoint& address) const;
  [[nodiscard]] proxy::EntranceSettings entrance(const Listener& listener) const;
  void begin(Listener& listener, std::vector<net::ListeningSocket> sockets);
  void leave(const Listener& listener);

  const Workers& workers_;
  Log& log_;
  CertificateWatch certificates_;
  std::vector<Listener> listeners_;
  std::size_t next_ = 0;  // number
  std::size_t most_sessions_ = 1;
};

}  // namespace weir::app
