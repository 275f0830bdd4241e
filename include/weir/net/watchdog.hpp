// Deadlines for every wait, without a timer a wait: each watched object keeps the tick at which it is late,
// and one coarse timer a worker walks over them all.
//
// Belongs to one worker. A deadline is never early; it is late by up to two ticks (kTick), and by what holds
// the worker up.
#pragma once

#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"

#include <chrono>
#include <cstdint>

#include <boost/intrusive/list.hpp>

namespace weir::net {

class Watchdog;

// Something that waits. Derive, and arm the deadline before each wait.
class Watched
    : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 protected:
  explicit Watched(Watchdog& watchdog);
  ~Watched() = default;

  // Late after `wait` from now; replaces an earlier deadline.
  void arm(base::Duration wait) noexcept;
  void disarm() noexcept { late_at_ = kNever; }

 private:
  friend class Watchdog;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  // The deadline passed; it is disarmed already. Must not destroy any watched object.
  virtual void on_late() noexcept = 0;
  // Once a tick, late or not.
  virtual void on_tick() noexcept {}

  const Watchdog& watchdog_;
  std::uint64_t late_at_ = kNever;  // in ticks
};

class Watchdog {
 public:
  static constexpr base::Duration kTick{50'000};

  explicit Watchdog(Executor executor) : timer_(executor) {}

  // Begins to tick; goes on until stop().
  void start();
  void stop();

 private:
  friend class Watched;
  using List = boost::intrusive::list<Watched, boost::intrusive::constant_time_size<false>>;

  void schedule();
  void tick() noexcept;

  Timer timer_;
  List watched_;
  std::uint64_t now_ = 0;  // in ticks
  bool ticking_ = false;
};

}  // namespace weir::net
