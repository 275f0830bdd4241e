// The watchdog enforces the deadline of every wait, without a timer for each wait. A watched object stores
// the tick of its deadline, and one coarse timer for each worker checks all objects. If there are more than
// kAtOnce objects, the check is split over several turns of the event loop, so that idle connections do not
// delay active ones. An object that needs no tick for a while can skip ticks: the timer then skips the object
// at almost no cost.
//
// Belongs to one worker. A deadline never fires early. It fires late by up to two ticks (kTick), plus any
// delay of the worker.
#pragma once

#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <boost/intrusive/list.hpp>

namespace weir::net {

class Watchdog;

// An object that waits. A derived class must call arm() before each wait. The watchdog must outlive the
// object.
class Watched
    : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 protected:
  explicit Watched(Watchdog& watchdog);
  ~Watched() = default;

  // Sets the deadline to `wait` from now. Replaces an earlier deadline. Ends the skipping of ticks.
  void arm(base::Duration wait) noexcept;
  void disarm() noexcept { late_at_ = kNever; }

  // Stops the calls of on_tick() for a second (kSkippedTicks) or until the deadline passes, whichever is
  // earlier. May be called only as the last step of on_tick().
  void skip_ticks() noexcept;
  // Ends the skipping of ticks. The next tick that begins checks the object; a tick that is already in
  // progress does not.
  void wake() noexcept {
    if (skips_ticks_) resume_ticks();
  }
  // Wakes all objects of this object's watchdog (Watchdog::wake_all()).
  void wake_all() noexcept;

 private:
  friend class Watchdog;
  void resume_ticks() noexcept;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  // Called when the deadline has passed. The deadline is removed before the call. Must not destroy any
  // watched object.
  virtual void on_late() noexcept = 0;
  // Called once in each tick unless the object skips ticks. If the deadline has passed, on_tick() is called
  // before on_late().
  virtual void on_tick() noexcept {}

  Watchdog& watchdog_;
  std::uint64_t late_at_ = kNever;  // number of the tick at which the deadline passes
  bool skips_ticks_ = false;
};

class Watchdog {
 public:
  static constexpr base::Duration kTick{50'000};
  static constexpr std::uint64_t kSkippedTicks = 20;  // how many ticks skip_ticks() skips
  // The number of objects to check in one turn of the event loop; this takes about 0.1 ms. Later turns check
  // the other objects. Once half a tick has passed, a single turn checks all remaining objects.
  static constexpr std::size_t kAtOnce = 256;

  explicit Watchdog(Executor executor) : timer_(executor) {}

  // Starts the timer, which runs until stop().
  void start();
  void stop();
  // Wakes all objects that skip ticks. If a tick is in progress, this tick still checks the objects;
  // otherwise the next tick checks them.
  void wake_all() noexcept;

 private:
  friend class Watched;
  using List = boost::intrusive::list<Watched, boost::intrusive::constant_time_size<false>>;

  void schedule(Timer::time_point at);
  void tick() noexcept;

  Timer timer_;
  List watched_;  // objects that do not skip ticks and are not in due_
  List due_;      // objects that the current tick has not checked yet
  // objects that skip ticks; index: the number of the tick that wakes them, modulo kSkippedTicks
  std::array<List, kSkippedTicks> skipping_;
  std::uint64_t now_ = 0;      // number of ticks so far
  Timer::time_point began_{};  // when the current tick began
  bool ticking_ = false;
  bool under_way_ = false;  // true while the check of a tick continues in later turns of the event loop
};

}  // namespace weir::net
