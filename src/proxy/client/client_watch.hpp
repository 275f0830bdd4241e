// The deadline of the wait that one request has under way, and whether its client is still there.
//
// A wait ends when its deadline passes: late() tells then. While somebody other than the client is waited
// for (a server, the queue, Redis), it also ends when the client leaves: left() tells then.
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
  // Returns true if the client has left, as far as the event loop has heard. [server] half_close says whether
  // a client that only ended its sending has.
  [[nodiscard]] virtual bool has_gone() const noexcept = 0;

  void begin_cancellable_wait() noexcept {
    waits_cancellably_ = true;
    wake();
  }
  void end_cancellable_wait() noexcept { waits_cancellably_ = false; }
  // While true, a wait for others goes on though the client leaves.
  void keep_waiting_without_client(bool goes_on) noexcept { waits_without_client_ = goes_on; }
  // While true, a client that ends its sending has left, whatever [server] half_close says.
  void end_at_half_close(bool ends) noexcept { half_close_ends_ = ends; }

  // Adds `time` that a request took of the worker to what its connection has had in its turn.
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
