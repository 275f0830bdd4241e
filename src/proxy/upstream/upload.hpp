// Sends a request body while the exchange already waits for the answer. This is necessary if the body arrives
// in pieces, or if the server accepts it in pieces. The upload runs as a second coroutine beside the
// exchange. The exchange waits for the end of the upload before it ends. UpstreamExchange owns the upload.
//
// The client's watch has one deadline for both coroutines. A deadline that is meant for the answer, or for a
// client that reads the answer, also ends the upload's current wait. The upload then waits again. For
// min_rate, the time that it has already waited counts, too.
#pragma once

#include "proxy/exchange/message_gate.hpp"
#include "proxy/upstream/server_attempt.hpp"

#include "weir/net/signal.hpp"
#include "weir/net/task.hpp"
#include "weir/proxy/min_rate.hpp"
#include "weir/proxy/relay.hpp"

#include <string>

namespace weir::proxy {

class Upload {
 public:
  // `begun`: text that the server has not accepted yet: the rest of the request's head, and the part of the
  // body that weir sends again. `gate`: limits the gRPC messages in the rest of the body; null: no limit. The
  // other arguments must outlive the upload.
  Upload(ExchangeContext& context, ServerAttempt& attempt, std::string begun, MessageGate* gate);

  // Starts the upload. If start() throws, the upload has already ended.
  void start();
  // Stops the upload. The caller must await the result, which completes when the upload has ended.
  [[nodiscard]] net::Signal::Wait end() noexcept;

  // Returns true if the whole body was sent to the server.
  [[nodiscard]] bool is_sent() const noexcept { return sent_; }

  // Returns true if the client waits for 100 Continue before it sends its body.
  [[nodiscard]] bool is_expectant() const noexcept { return expects_continue_; }
  // Must be called after weir sent 100 Continue, or when the client sends its body without waiting for it.
  void begin_body() noexcept;
  // Returns true if the deadline for the server's 100 Continue has passed, but the exchange can continue.
  [[nodiscard]] bool is_continue_overdue() const noexcept;
  // If the deadline for 100 Continue is armed, replaces it by the deadline for the server's answer and
  // returns true. Otherwise returns false.
  [[nodiscard]] bool suspend_continue_deadline() noexcept;
  // Arms the deadline for 100 Continue.
  void await_continue() noexcept;
  // Must be called if 100 Continue is overdue. Afterwards weir waits only for the answer.
  void forget_word() noexcept { has_continue_deadline_ = false; }

 private:
  enum class Next : std::uint8_t { Wait, Advance, End };

  [[nodiscard]] net::Task<void> run();
  [[nodiscard]] net::Task<bool> wait_at_gate();
  [[nodiscard]] net::Task<bool> wait_for_pace();
  [[nodiscard]] Next judge_wait(const net::ErrorCode& ec, bool reading, MinRateCheck& pace);
  void finish(Relay::Need need, BodySource::Status status);
  void fail(unsigned status, bool slow) noexcept;
  void arm_for_more(bool reading) noexcept;
  void arm_since_head(base::Duration time) noexcept;
  void end_body() noexcept;

  ExchangeContext& context_;
  ServerAttempt& attempt_;
  MessageGate* const gate_;
  net::Signal finished_;  // raised when the upload has ended
  std::string out_;       // text to send: first the text in `begun`, then the framing of the body
  // time limit for the server's answer, and for each wait until the server accepts more octets
  const base::Duration response_;
  const base::Duration continue_timeout_;  // time limit for the server's 100 Continue
  base::TimePoint began_{};                // since when the client may send its body
  // When the current wait for the client began. The epoch if min_rate does not apply to the wait.
  base::TimePoint since_{};
  bool done_ = false;
  bool sent_ = false;
  bool stop_ = false;  // true after end(): the upload must send no more
  bool expects_continue_ = false;
  bool has_continue_deadline_ = false;  // true while the watch has the deadline for 100 Continue
};

// Counts the fault in the metrics, and records it for the access log.
void note_body_fault(ExchangeContext& context, const BodyFault& fault);
// Returns the error answer for `fault`. REQUIRES a fault.
[[nodiscard]] LocalError error_of(const BodyFault& fault) noexcept;

}  // namespace weir::proxy
