// The way of a server's answer to the client: its head with weir's fields, then the body as it comes.
//
// If the client leaves before the end while a rule waits for that end, the answer is read on and dropped: it
// says what the request costs, or the server's work is what a place stands for. `timeouts.abandoned` bounds
// that.
#pragma once

#include "proxy/upstream/server_attempt.hpp"
#include "proxy/upstream/upload.hpp"

#include "weir/net/task.hpp"
#include "weir/proxy/min_rate.hpp"
#include "weir/proxy/relay.hpp"

#include <cstdint>
#include <optional>

namespace weir::proxy {

class AnswerRelay {
 public:
  // An answer whose head is read. All outlive the relay. `upload`: null if the request went at once.
  AnswerRelay(ExchangeContext& context, ServerAttempt& attempt, const Upload* upload);

  // Returns nothing if no octet of the answer reached the client, and none will. The task has nearly always
  // ended already.
  [[nodiscard]] net::Task<std::optional<Outcome>> run();

 private:
  [[nodiscard]] bool is_request_sent() const noexcept;
  [[nodiscard]] BodySink& begin();
  void note_pause();
  [[nodiscard]] net::Task<std::optional<Outcome>> run_on(Relay::Need need);
  [[nodiscard]] net::Task<Relay::Need> relay_rest(Relay::Need need);
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
  const bool request_sent_;  // before the answer began
  BodySink& sink_;
  BodySource body_;
  Relay relay_;
  MinRateCheck pace_;         // of the client
  std::uint64_t taken_ = 0;   // octets that its system had, when it was waited for last
  base::Duration stalled_{};  // since it took any
  bool slow_ = false;         // it takes the answer slower than min_rate
};

}  // namespace weir::proxy
