// Where weir listens: which sockets every worker has, and what they show. Belongs to the main thread.
#pragma once

#include "server/process/worker_thread.hpp"

#include "weir/base/result.hpp"
#include "weir/config/settings.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/listener_settings.hpp"
#include "weir/server/certificates.hpp"
#include "weir/upgrade/passage.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::app {

class Listeners {
 public:
  using Workers = std::vector<std::unique_ptr<WorkerThread>>;

  // Sockets that somebody else has left for such an address; none: they are to be opened.
  using Heritage = std::function<std::vector<net::ListeningSocket>(const base::Endpoint& address)>;

  // `workers` and `log` outlive it.
  Listeners(net::Executor executor, const Workers& workers, Log& log);
  // `is_lent`: whether the unix socket's file of such an address is somebody else's to remove.
  using IsLent = std::function<bool(const base::Endpoint& address)>;
  void inherit(Heritage heritage, IsLent is_lent) {
    heritage_ = std::move(heritage);
    is_lent_ = std::move(is_lent);
  }

  // A listener as it is to be.
  struct Wanted {
    net::ListenerSettings settings;
    std::optional<std::size_t> number;          // of the one that listens there already
    std::vector<net::ListeningSocket> sockets;  // else: at least one for each worker
    std::vector<net::ListeningSocket> copies;   // of these, to be handed on
    CertificateWatch::Shown shown;
    bool changed = true;  // from what it was
  };
  // Opens sockets that there are not yet, and reads certificates that are new; nothing changes for those that
  // listen. An error says what could not be done, and for whom.
  [[nodiscard]] base::Result<std::vector<Wanted>> prepare(const Settings& settings) const;
  // These, and no others, from now on. `most_sessions`: of a worker. What was new or is gone, in words.
  std::vector<std::string> put_in_force(std::vector<Wanted> wanted, std::size_t most_sessions);

  // Every socket, by the listener's address as configured. Open until close().
  [[nodiscard]] std::vector<std::pair<std::string, std::vector<int>>> sockets() const;
  // Of another process. Where there is no listener of its address it is another's, for one request.
  void adopt(ArrivedConnection arrived);
  // Keeps none of them: who listens is the workers' matter alone.
  void close();
  // Likewise, and nobody listens there any more: the files of unix sockets go.
  void end();

  void look_at_certificates() { certificates_.look(); }
  void look_at_certificates_every(base::Duration period) { certificates_.look_every(period); }
  [[nodiscard]] admin::TlsFigures certificates() const { return certificates_.figures(); }

 private:
  struct Listener {
    std::size_t number;
    net::ListenerSettings settings;
    std::vector<net::ListeningSocket> sockets{};  // shared with the workers, to be handed on
    std::string name{};  // where it listens, with the port that it was given; kept when they are closed
  };

  // Of `wanted.settings`, all but what stays. False: as prepare().
  [[nodiscard]] base::Result<void> prepare(Wanted& wanted) const;
  [[nodiscard]] base::Result<std::vector<net::ListeningSocket>> open(const base::Endpoint& address) const;
  [[nodiscard]] proxy::EntranceSettings entrance(const Listener& listener) const;
  void begin(Listener& listener, std::vector<net::ListeningSocket> sockets);
  void remove_file(const Listener& listener) const;
  void leave(const Listener& listener);

  const Workers& workers_;
  Log& log_;
  CertificateWatch certificates_;
  std::vector<Listener> listeners_;
  Heritage heritage_;
  IsLent is_lent_;
  std::size_t next_ = 0;  // number
  std::size_t adopter_ = 0;
  std::size_t most_sessions_ = 1;
};

}  // namespace weir::app
