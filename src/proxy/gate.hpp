// Asks the stores what a request may do: the key table at once, then Redis in one trip. All or nothing over
// both.
#pragma once

#include "proxy/exchange_space.hpp"

#include "weir/net/asio.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/proxy/worker.hpp"

#include <array>
#include <span>

namespace weir::proxy {

struct Ruling {
  policy::Decision decision{};
  // Set instead of a decision:
  policy::Objection objection{};         // the request does not say what a rule needs to know
  const policy::Rule* closed = nullptr;  // its store is away, and on_store_failure = "closed"
};

// The departure that a delayed request waits for: of the enforced line with the longest delay.
struct Departure {
  const limit::Charge* charge = nullptr;  // of a bill in the exchange's space
  base::TimePoint promised{};             // in the time of the store that promised it
  base::TimePoint at{};                   // the same in ours
};

class Gate {
 public:
  Gate(Worker& worker, ExchangeSpace& space) noexcept
      : worker_(worker),
        space_(space),
        bills_{&space.evaluation.local, &space.evaluation.remote, &space.fallback} {}

  // Names the keys and charges what is kept here. True: `ruling` is final; false: ask_redis() comes next.
  [[nodiscard]] bool decide_here(base::TimePoint now, Ruling& ruling);
  [[nodiscard]] net::Task<Ruling> ask_redis();

  // REQUIRES a decision of Delay.
  [[nodiscard]] Departure departure() const;

  // The exchange has ended: gives back what it held, and tells the limiters that learn from it how it went.
  void end(base::TimePoint now, const limit::Ending& ending);

  // Gives everything back that was charged: the request never reached what it was charged for.
  void refund() { refund_but(nullptr, {}); }
  // The same for a request that leaves the queue: of the line that it waited for, `freed` is given back, the
  // last departure that was promised to anybody waiting here.
  void refund_but(const limit::Charge* waited_for, base::TimePoint freed);

 private:
  [[nodiscard]] Ruling rule();
  [[nodiscard]] Ruling fall_back();
  void count(const policy::Bill& bill, bool admitted);
  void hold(const policy::Bill& bill);
  [[nodiscard]] std::span<const policy::Bill* const> asked() const;

  Worker& worker_;
  ExchangeSpace& space_;
  std::array<const policy::Bill*, 3> bills_;
  base::TimePoint charged_at_{};
  base::TimePoint redis_now_{};
  bool local_charged_ = false;
  bool remote_charged_ = false;
  bool fallback_charged_ = false;
};

}  // namespace weir::proxy
