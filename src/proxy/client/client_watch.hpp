// The deadline of a request's current wait, and whether its client is still connected.
//
// A wait ends when its deadline passes; late() then returns true. A wait for a server, the queue or Redis
// also ends when the client disconnects; left() then returns true.
//
// Belongs to one worker.
#pragma once

#include "weir/base/time.hpp"
#include "weir/net/watchdog.hpp"

namespace weir::proxy {

class ClientWatch : public net::Watched {
 public:
  using net::Watched::arm;
  using net::Watched::disarm;

  [[nodiscard]] bool late() const noexcept { return late_; }
  void clear_late() noexcept { late_ = false; }
  [[nodiscard]] bool left() const noexcept { return left_; }
  // Returns true if the event loop has seen that the client disconnected. [server] half_close says whether a
  // client that closed only its sending side counts as disconnected.
  [[nodiscard]] virtual bool has_disconnected() const noexcept = 0;

  void begin_cancellable_wait() noexcept {
    waits_cancellably_ = true;
    wake();
  }
  void end_cancellable_wait() noexcept { waits_cancellably_ = false; }
  // While `goes_on` is true, a wait for a server, for the queue or for Redis continues even if the client
  // disconnects.
  void keep_waiting_without_client(bool goes_on) noexcept { waits_without_client_ = goes_on; }
  // While `ends` is true, a client that closes its sending side counts as disconnected, whatever [server]
  // half_close says.
  void end_at_half_close(bool ends) noexcept { half_close_ends_ = ends; }

  // Adds time that the worker spent on a request of this connection. If the total is large, the connection
  // yields to other connections.
  void note_work(base::Duration time) noexcept { work_in_turn_ += time; }

 protected:
  explicit ClientWatch(net::Watchdog& watchdog) : Watched(watchdog) {}
  ~ClientWatch() = default;

  base::Duration work_in_turn_{};
  bool waits_cancellably_ = false;
  bool waits_without_client_ = false;
  bool half_close_ends_ = false;
  bool late_ = false;
  bool left_ = false;
};

}  // namespace weir::proxy
