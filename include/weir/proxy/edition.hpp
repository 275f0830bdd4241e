// One reading of the configuration, and what hangs on it. Immutable but for what fleets learn. A reload makes
// another one: each worker goes over to it for requests that begin from then on, and the old one goes when
// its last request has ended.
//
//   Edition (shared by all workers) ◄── Term (one worker's hold on it: pools, a plain count) ◄── Stay (a
//   request's)
//
// A request pays for that with a count up and a count down, of its own worker's memory. What outlives a
// request and its edition points to limiters alone, which stay (limit/shared_limiter.hpp).
#pragma once

#include "weir/proxy/configuration.hpp"
#include "weir/upstream/fleet.hpp"
#include "weir/upstream/pool.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace weir::proxy {

struct Edition {
  Configuration config;
  // Of each configured upstream; editions between which it did not change share it.
  std::vector<std::shared_ptr<upstream::Fleet>> fleets;
};

// One worker's hold on an edition. Belongs to the worker.
struct Term {
  std::shared_ptr<const Edition> edition;  // shared by the workers: the last one to leave frees it
  std::vector<std::shared_ptr<upstream::Pool>> pools;  // of its fleets; shared as those are, by terms
  std::size_t stays = 0;
  bool current = true;
};

// The terms of one worker: the present one, and those that requests have not left yet.
class Terms {
 public:
  // What a request works by, for as long as it lasts.
  class Stay {
   public:
    explicit Stay(Terms& terms) noexcept : terms_(terms), term_(terms.terms_.front()) { ++term_.stays; }
    ~Stay() {
      if (--term_.stays == 0 && !term_.current) terms_.end(term_);
    }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

    [[nodiscard]] const Configuration& config() const noexcept { return term_.edition->config; }
    [[nodiscard]] upstream::Pool& pool(std::size_t upstream) const noexcept { return *term_.pools[upstream]; }

   private:
    Terms& terms_;
    Term& term_;
  };

  Terms(net::Executor executor, net::Watchdog& watchdog, std::shared_ptr<const Edition> edition);

  // The present configuration, until the next turn of the loop: who waits asks again.
  [[nodiscard]] const Configuration& config() const noexcept { return terms_.front().edition->config; }
  // Requests that begin from now on work by this one. Throws where memory runs out, and nothing changed.
  void begin(std::shared_ptr<const Edition> edition);

 private:
  [[nodiscard]] Term make(std::shared_ptr<const Edition> edition);
  void end(const Term& term) noexcept;

  net::Executor executor_;
  net::Watchdog& watchdog_;
  std::list<Term> terms_;  // the present one first
};

}  // namespace weir::proxy
