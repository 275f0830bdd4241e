// Paces the bodies of one exchange by the rules that have `bandwidth`.
//
// All exchanges of a key share one leaky bucket of octets in the key table. weir forwards a body in pieces.
// Each piece is charged first, and gets the instant at which weir may forward it. So weir forwards the pieces
// of all exchanges in the order of their charges, and an exchange with many octets does not displace one with
// few. While a piece waits, the relay reads nothing more (back-pressure).
//
// A key is charged at most 10 s in advance (policy::Rule::kLongestPaceLead). Beyond that, a piece waits
// without a charge and asks again. So the charges of exchanges that have ended can delay other exchanges by
// at most 10 s.
//
// A Pacing belongs to one exchange. It has two gates, one for each body. The coroutines of the exchange use
// the gates.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/proxy/pacer.hpp"
#include "weir/proxy/worker.hpp"

#include <chrono>
#include <cstddef>
#include <memory>

#include <boost/container/static_vector.hpp>

namespace weir::proxy {

// Returns the maximum size of a piece at this rate: the octets of 100 ms, clamped to the range from 512 B to
// 16 KiB.
[[nodiscard]] std::size_t piece_of(const limit::Rate& rate) noexcept;

// weir may forward a piece this long before the piece's departure from the bucket. So if a key was idle, weir
// forwards the octets of the first 100 ms at once.
inline constexpr base::Duration kPaceAhead{100'000};

class Pacing;

// Holds back the octets of one body until weir may forward them.
class PaceGate final : public Pacer {
 public:
  PaceGate(Pacing& pacing, net::Executor executor) : pacing_(pacing), pause_(executor) {}

  [[nodiscard]] std::size_t admit(std::size_t size) override;
  void passed(std::size_t octets) noexcept override { charged_ -= octets; }
  // Charges octets that weir forwards without waiting, so that later octets of the same keys wait longer.
  // Omits the rest once a key is charged as far in advance as is allowed.
  void charge_at_once(std::size_t octets);
  // Returns the time until weir may forward the next piece, but at most a second. So at least once a second,
  // callers renew their deadlines and check whether the other side has left.
  [[nodiscard]] base::Duration wait() const noexcept;
  // Waits for the time that wait() returns, but at most `most`. Ends early after cancel().
  [[nodiscard]] net::Task<void> hold(base::Duration most = std::chrono::seconds{1});
  void cancel() noexcept { pause_.cancel(); }

 private:
  Pacing& pacing_;
  net::Timer pause_;
  std::size_t charged_ = 0;  // octets that are charged, and not forwarded yet
  // when weir may forward the charged octets; if none are charged, when to try to charge again
  base::TimePoint due_{};
};

class Pacing {
 public:
  // `waited`: the sum to which this object adds the time that bodies wait. Must outlive this object. REQUIRES
  // that `evaluation` has paced keys.
  Pacing(Worker& worker, const policy::Evaluation& evaluation, base::Duration& waited);
  // Returns null if no rule paces the request.
  [[nodiscard]] static std::unique_ptr<Pacing> make(Worker& worker, const policy::Evaluation& evaluation,
                                                    base::Duration& waited);

  struct Delay {
    bool charged;         // false: a key was already charged too far in advance, so nothing was charged
    base::TimePoint due;  // when weir may forward the octets; if not charged, when to call charge() again
  };
  // Charges `octets` (1 to kMaxCost) to each key, or to none.
  [[nodiscard]] Delay charge(std::size_t octets);
  [[nodiscard]] std::size_t piece() const noexcept { return piece_; }
  [[nodiscard]] base::TimePoint now() const noexcept { return worker_.clock.now(); }
  // Adds `waited`, the time that a body has waited, to the request's total. Also adds `waited` to the metric
  // of the rule that made the last piece wait longest.
  void note_wait(base::Duration waited) noexcept;
  // Return the gates of the request's body and of the answer's body. In a tunnel, they are the gates of the
  // octets to the server and to the client.
  [[nodiscard]] PaceGate& to_server() noexcept { return to_server_; }
  [[nodiscard]] PaceGate& to_client() noexcept { return to_client_; }
  // Ends every wait.
  void cancel() noexcept {
    to_server_.cancel();
    to_client_.cancel();
  }

 private:
  Worker& worker_;
  base::Duration& waited_;
  boost::container::static_vector<limit::Charge, limit::kMaxCharges> charges_;
  boost::container::static_vector<limit::RuleIndex, limit::kMaxCharges> indexes_;
  boost::container::static_vector<limit::Outcome, limit::kMaxCharges> outcomes_;
  std::size_t piece_;
  std::size_t slowest_ = 0;  // index of the charge with the longest delay
  PaceGate to_server_, to_client_;
};

}  // namespace weir::proxy
