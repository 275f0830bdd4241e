// Deadlines for every wait, without a timer a wait: each watched object keeps the tick at which it is late,
// and one coarse timer a worker walks over them all; over kAtOnce of them in one go, so that however many
// wait, nobody who is served waits for that. Who has nothing to do at ticks dozes, and costs next to nothing.
//
// Belongs to one worker. A deadline is never early; it is late by up to two ticks (kTick), and by what holds
// the worker up.
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

// Something that waits. Derive, and arm the deadline before each wait.
class Watched
    : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 protected:
  explicit Watched(Watchdog& watchdog);
  ~Watched() = default;

  // Late after `wait` from now; replaces an earlier deadline. Ends a doze.
  void arm(base::Duration wait) noexcept;
  void disarm() noexcept { late_at_ = kNever; }

  // From on_tick(), at its end: it needs the next tick in a second only (kDoze), unless its deadline comes
  // before.
  void doze() noexcept;
  void wake() noexcept {
    if (dozes_) end_doze();
  }
  // As the watchdog's.
  void wake_all() noexcept;

 private:
  friend class Watchdog;
  void end_doze() noexcept;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  // The deadline passed; it is disarmed already. Must not destroy any watched object.
  virtual void on_late() noexcept = 0;
  // Once a tick, late or not, but for dozes.
  virtual void on_tick() noexcept {}

  Watchdog& watchdog_;
  std::uint64_t late_at_ = kNever;  // in ticks
  bool dozes_ = false;
};

class Watchdog {
 public:
  static constexpr base::Duration kTick{50'000};
  static constexpr std::uint64_t kDoze = 20;  // ticks
  // Some 0.1 ms; the rest of a tick comes in turns of its own, unless it would take longer than half a tick.
  static constexpr std::size_t kAtOnce = 256;

  explicit Watchdog(Executor executor) : timer_(executor) {}

  // Begins to tick; goes on until stop().
  void start();
  void stop();
  // Whoever dozes has a tick with all others.
  void wake_all() noexcept;

 private:
  friend class Watched;
  using List = boost::intrusive::list<Watched, boost::intrusive::constant_time_size<false>>;

  void schedule(Timer::time_point at);
  void tick() noexcept;

  Timer timer_;
  List watched_;                    // those that are awake, but for due_
  List due_;                        // to whom the tick under way has still to come
  std::array<List, kDoze> dozing_;  // those that doze, by the number of the tick that ends it, modulo kDoze
  std::uint64_t now_ = 0;           // in ticks
  Timer::time_point began_{};       // when this one did
  bool ticking_ = false;
  bool under_way_ = false;  // a tick
};

}  // namespace weir::net
