// What an exchange was charged and its answer is to settle: the lines of its bills whose rules say so,
// wherever their state is. What Redis keeps is settled by a call that nobody waits for, so of such a line the
// headers tell how the key stood when it was charged, had it been charged the right amount.
//
//   begin ─► answered: by the status, the head ─► see, complete: by a JSON body ─► end
//
// Each line is settled once, by the first of these that can; at the end what is left stands as it was
// charged. A charge that is given back was never due (cancel).
//
// Part of the gate. Costs a request that meets no such rule one comparison.
#pragma once

#include "proxy/exchange/exchange_buffers.hpp"

#include "weir/base/time.hpp"
#include "weir/http/head.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/body_observer.hpp"
#include "weir/proxy/worker.hpp"

#include <cstdint>
#include <string_view>

#include <boost/container/static_vector.hpp>

namespace weir::proxy {

class Settlements final : public BodyObserver {
 public:
  Settlements(Worker& worker, ExchangeBuffers& buffers) noexcept : worker_(worker), buffers_(buffers) {}

  // A bill of the exchange's space was charged, by the clock of its store.
  enum class Store : std::uint8_t { Table, Redis };
  void begin(policy::Bill& bill, Store store, base::TimePoint charged_at);
  void cancel() noexcept {
    wait_ = Wait::Nothing;
    charged_bills_.clear();
  }
  // Whether an answer is waited for.
  [[nodiscard]] bool due() const noexcept { return wait_ == Wait::Answer; }

  // Returns true if more of the answer can still settle something.
  [[nodiscard]] bool needs_answer() const noexcept {
    return wait_ == Wait::Answer || (wait_ == Wait::Body && !too_long_);
  }

  // Whether an enforced rule's cost is to be read in the answer's body, which has to be whole and plain then.
  [[nodiscard]] bool want_body();

  // The head of the answer; `head`: null where weir answers itself. True when something changed: the outcomes
  // of the bill then tell how its keys stand now.
  bool answered(unsigned status, const http::ResponseHead* head, base::TimePoint now);

  // Who is to see the body of the answer; null: nobody.
  [[nodiscard]] BodyObserver* watch() noexcept { return wait_ == Wait::Body ? this : nullptr; }
  void see(std::string_view piece) override;
  void complete() override;

  // The exchange has ended: what is not settled stands.
  void end() {
    if (wait_ != Wait::Nothing) stand();
  }

 private:
  enum class Wait : std::uint8_t { Nothing, Answer, Body };

  struct ChargedBill {
    policy::Bill* bill;
    Store store;
    base::TimePoint charged_at;
  };
  struct ChargedLine {
    const ChargedBill& bill_charge;
    std::size_t number;

    [[nodiscard]] const limit::Charge& charge() const { return bill_charge.bill->charges()[number]; }
    [[nodiscard]] const policy::Rule& rule() const { return *bill_charge.bill->line(number).rule; }
    [[nodiscard]] limit::Outcome& outcome() const { return bill_charge.bill->outcomes()[number]; }
  };
  // Calls back with each line that was charged and is to be settled, and how.
  template <class Visit>
  void for_each_line(Visit visit);
  bool settle_by_head(const ChargedLine& line, const policy::Settlement& settlement,
                      const http::ResponseHead* head);
  bool settle(const ChargedLine& line, const policy::ReportedCost& told);
  bool settle_to(const ChargedLine& line, limit::Cost actual);
  void settle_here(const ChargedLine& line, limit::Cost actual);
  void settle_in_redis(const ChargedLine& line, limit::Cost actual);
  void note(const ChargedLine& line, limit::Cost actual, limit::HybridTimestamp timestamp) noexcept;
  void count(const ChargedLine& line, observe::Settled outcome);
  void settle_by_body(bool whole);
  void stand();

  Worker& worker_;
  ExchangeBuffers& buffers_;
  boost::container::static_vector<ChargedBill, 3> charged_bills_;  // here, in Redis or in its place
  base::TimePoint now_{};
  std::uint64_t most_ = 0;    // of the body
  std::uint64_t length_ = 0;  // of the body, where it was announced
  unsigned status_ = 0;
  Wait wait_ = Wait::Nothing;
  bool too_long_ = false;  // or there is no memory for it
};

}  // namespace weir::proxy
