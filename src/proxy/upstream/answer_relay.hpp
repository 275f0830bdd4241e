// Relays a server's answer to the client: the head with weir's fields, then the body as it arrives. A part of
// UpstreamExchange; only the worker's thread uses it.
//
// The client may disconnect early while a rule needs the end of the answer. The rule may need the cost that
// the answer states, or hold a permit until the server has answered. In that case weir reads the rest of the
// answer and drops it, for at most `timeouts.abandoned`.
#pragma once

#include "proxy/upstream/server_attempt.hpp"
#include "proxy/upstream/upload.hpp"

#include "weir/net/task.hpp"
#include "weir/proxy/min_rate.hpp"
#include "weir/proxy/relay.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::proxy {

class AnswerRelay {
 public:
  // Must be created after the answer's head was read. All arguments must outlive the relay. `upload`: null if
  // the whole request was sent at once. `gate`: limits the messages in the answer; may be null.
  AnswerRelay(ExchangeContext& context, ServerAttempt& attempt, const Upload* upload, MessageGate* gate);

  // Relays the answer. Returns nullopt if the answer failed before the client received an octet of it; weir
  // may then send another answer. The returned task has nearly always ended already.
  [[nodiscard]] net::Task<std::optional<Outcome>> run();

 private:
  [[nodiscard]] bool is_request_sent() const noexcept;
  [[nodiscard]] BodySink& begin();
  void note_pause();
  [[nodiscard]] net::Task<std::optional<Outcome>> run_on(Relay::Need need);
  [[nodiscard]] net::Task<Relay::Need> relay_rest(Relay::Need need);
  [[nodiscard]] net::Task<bool> wait_at_gate();
  [[nodiscard]] net::Task<bool> wait_for_pace();
  [[nodiscard]] net::Task<Outcome> refuse_message();
  [[nodiscard]] net::Task<Outcome> cut_stream();
  [[nodiscard]] net::Task<Outcome> end_early(bool clean, std::string_view trailers);
  [[nodiscard]] bool is_message_refused() const noexcept;
  [[nodiscard]] bool keeps_reading(base::Duration waited, const net::ErrorCode& ec);
  void note_lasting_answer() noexcept;
  [[nodiscard]] Outcome finish();
  [[nodiscard]] bool is_abandoned(Relay::Need need) const noexcept;
  [[nodiscard]] std::optional<Outcome> abort_answer(Relay::Need need);
  [[nodiscard]] Outcome note_client_fault();
  [[nodiscard]] net::Task<void> read_to_end();
  [[nodiscard]] bool is_in_step() const noexcept;

  ExchangeContext& context_;
  ServerAttempt& attempt_;
  const Upload* const upload_;
  const bool request_sent_;  // the whole request was sent before the answer began
  BodySink& sink_;
  StreamMeter* const meter_;  // charges the answer while weir forwards it; null if no rule asks for that
  MessageGate* const gate_;   // limits the messages of a gRPC call; null if `meter_` is set
  BodySource body_;
  Relay relay_;
  MinRateCheck pace_;         // compares the client's reading rate with min_rate
  std::uint64_t taken_ = 0;   // the largest number of octets that the client's system had acknowledged so far
  base::Duration stalled_{};  // time since the client last acknowledged octets
  bool slow_ = false;         // the client reads slower than min_rate
};

}  // namespace weir::proxy
