// Settlements corrects charges according to the answer, in the key table and in Redis. Only rules with a
// settlement are affected. weir sends a correction to Redis without waiting for the result. So for a key in
// Redis, the rate-limit headers show the state at the time of the charge. weir corrects `remaining`
// itself, by the difference of the costs.
//
//   begin ─► answered: by the status or the head ─► see, complete: by a body or trailers ─► end
//
// Each charge is settled once, at the first step that can settle it. Charges that no step has settled stay as
// they are. cancel() forgets charges that were refunded.
//
// A cost in bytes is the number of octets that weir has forwarded, however the exchange ends. If the whole
// request has arrived, this cost is settled just before the client has the end of the answer. Otherwise
// settle_bytes() settles this cost.
//
// Part of AdmissionController. If no rule of a request has a settlement, Settlements does almost no work.
#pragma once

#include "proxy/admission/stream_costs.hpp"
#include "proxy/admission/stream_meter.hpp"
#include "proxy/exchange/exchange_buffers.hpp"

#include "weir/base/time.hpp"
#include "weir/http/head.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/body_observer.hpp"
#include "weir/proxy/relay.hpp"
#include "weir/proxy/worker.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

#include <boost/container/static_vector.hpp>

namespace weir::proxy {

class Settlements final : public BodyObserver {
 public:
  Settlements(Worker& worker, ExchangeBuffers& buffers) noexcept
      : worker_(worker), buffers_(buffers), stream_costs_(worker) {}

  using Store = StreamMeter::Store;
  // Records that the charges of `bill` were made in `store`, and keeps a reference to `bill`.
  // `charged_at`: the time of the charges by the store's clock.
  void begin(policy::Bill& bill, Store store, base::TimePoint charged_at);
  void cancel() noexcept {
    wait_ = Wait::Nothing;
    call_open_ = bytes_open_ = false;
    stream_costs_.clear();
    meter_.reset();
    charged_bills_.clear();
  }
  // Returns true if an answer that has not arrived yet may still settle a charge.
  [[nodiscard]] bool due() const noexcept { return wait_ == Wait::Answer; }

  // Returns true if the rest of the answer can still settle a charge.
  [[nodiscard]] bool needs_answer() const noexcept {
    return (wait_ == Wait::Answer && needs_head_) || (wait_ == Wait::Body && (call_open_ || !too_long_));
  }

  // Returns true if an enforced rule reads its cost in the answer's body. In that case weir needs the whole
  // body, uncompressed.
  [[nodiscard]] bool want_body();

  // Settles charges by the status and the head of the answer. `head`: null if weir creates the answer itself.
  // Returns true if an amount changed; the outcomes of the charges then show the present state of their keys.
  bool answered(unsigned status, const http::ResponseHead* head, base::TimePoint now);

  // Settles charges of a question to `actual`, the cost that the asker reports. Settles all charges of rules
  // with a settlement. In two cases, also settles the charges of rules that do not read their cost in the
  // request. Case 1: the question stated a cost. Case 2: none of its rules has a settlement. Never changes
  // concurrency limits.
  void settle_to_stated(limit::Cost actual, base::TimePoint now);

  // Charges the rules with `overdraft`. In `bill`, each charge of such a rule only checks the limit, at cost
  // 0. This function charges its whole cost (ChargeSource::overdraft), whatever its outcome. Each outcome
  // then shows the present state of its key, but `allowed` stays as it was before. `checked_at`: when `store`
  // has checked the bill, by the store's clock. `positions`: the positions in `bill` of the checks to charge.
  void overdraw(policy::Bill& bill, Store store, base::TimePoint checked_at, base::TimePoint now,
                limit::ChargeSet positions = ~limit::ChargeSet{0});

  // Sets the source of the request's body, for rules that charge for its octets. `body` must outlive the
  // exchange.
  void watch_request(const BodySource& body) noexcept { request_ = &body; }
  // Returns the observer of the answer's body; null if no rule reads the body or its trailers, or counts its
  // octets.
  [[nodiscard]] BodyObserver* watch() noexcept { return wait_ == Wait::Body || bytes_open_ ? this : nullptr; }
  // Returns the meter of the answer; null if no rule charges the answer while weir forwards it.
  [[nodiscard]] StreamMeter* meter() noexcept { return meter_ ? &*meter_ : nullptr; }
  void see(std::string_view piece) override;
  void complete(std::string_view trailers) override;
  // Settles a gRPC call that gets no status from its server. `grpc_status`: the status that the client sees.
  void end_call(unsigned grpc_status);

  // Settles the costs in bytes by the octets that weir has forwarded. Must be called before end(). If the
  // client disconnects, must be called before weir reads the rest of the answer. Does nothing if these costs
  // are settled already.
  void settle_bytes(std::uint64_t request, std::uint64_t response);

  // Ends the exchange. Charges that are not settled remain unchanged.
  void end() {
    if (wait_ != Wait::Nothing) leave_unsettled();
  }

 private:
  enum class Wait : std::uint8_t { Nothing, Answer, Body };

  struct ChargedBill {
    policy::Bill* bill;
    Store store;
    base::TimePoint charged_at;
  };
  struct OpenCharge {
    const ChargedBill& bill_charge;
    std::size_t number;

    [[nodiscard]] const limit::Charge& charge() const { return bill_charge.bill->charges()[number]; }
    [[nodiscard]] const policy::Rule& rule() const { return *bill_charge.bill->source(number).rule; }
    [[nodiscard]] limit::Outcome& outcome() const { return bill_charge.bill->outcomes()[number]; }
  };
  // Calls visit(OpenCharge) for each charge that was made. Checks are no charges.
  template <class Visit>
  void for_each_charge(Visit visit);
  // Calls visit(OpenCharge, Settlement) for each charge whose rule has a settlement.
  template <class Visit>
  void for_each_settlement(Visit visit);
  bool settle_by_head(const OpenCharge& open, const policy::Settlement& settlement,
                      const http::ResponseHead* head);
  [[nodiscard]] bool is_by_call(const policy::Settlement& settlement) const noexcept {
    return is_call_ && settlement.charged_calls != 0;
  }
  bool settle_calls(unsigned grpc_status);
  bool settle(const OpenCharge& open, const policy::ReportedCost& reported);
  bool settle_to(const OpenCharge& open, limit::Cost actual,
                 std::optional<observe::Settled> as = std::nullopt);
  [[nodiscard]] StreamMeter::Metered* metered(const OpenCharge& open);
  [[nodiscard]] limit::Cost charged_for(const OpenCharge& open);
  bool settle_to_estimate(const OpenCharge& open, bool whole);
  bool settle_cut(const OpenCharge& open, const policy::ReportedCost& reported);
  void settle_here(const OpenCharge& open, limit::Cost actual, limit::Cost total);
  void settle_in_redis(const OpenCharge& open, limit::Cost actual, limit::Cost total);
  void note(const OpenCharge& open, limit::Cost actual, limit::HybridTimestamp timestamp) noexcept;
  void count(const OpenCharge& open, observe::Settled outcome);
  void open_stream(const OpenCharge& open, const policy::Settlement& settlement);
  void see_stream(std::string_view piece);
  [[nodiscard]] policy::ReportedCost cost_in_body(const policy::Settlement& settlement, bool whole);
  void settle_by_body(bool whole);
  void settle_whole_bytes();
  void leave_unsettled();

  Worker& worker_;
  ExchangeBuffers& buffers_;
  // One element for each bill (list of charges): local, Redis and fallback.
  boost::container::static_vector<ChargedBill, 3> charged_bills_;
  base::TimePoint now_{};
  StreamCosts stream_costs_;  // of the rules that read the answer as a stream of records
  std::optional<StreamMeter> meter_;
  std::optional<http::StreamFormat> format_;  // set if the answer is a stream of records
  std::uint64_t most_ = 0;                    // the largest max_body of the rules that read the body
  std::uint64_t length_ = 0;             // Content-Length if a rule reads the answer's body; 0 if unknown
  std::uint64_t streamed_ = 0;           // octets of the stream so far
  const BodySource* request_ = nullptr;  // the body of the request
  std::uint64_t response_octets_ = 0;    // octets of the answer's body so far
  std::uint64_t response_length_ = 0;    // Content-Length of the answer; 0 if unknown
  unsigned status_ = 0;
  Wait wait_ = Wait::Nothing;
  bool is_call_ = false;     // the request is a gRPC call
  bool call_open_ = false;   // a charge waits for the status of the gRPC call
  bool bytes_open_ = false;  // a charge waits for the number of forwarded octets
  bool needs_head_ = false;  // a charge depends on more than the number of forwarded octets
  bool too_long_ = false;    // the body exceeds most_, or there is no memory for it
};

}  // namespace weir::proxy
