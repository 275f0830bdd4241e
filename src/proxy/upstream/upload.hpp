// A request body that goes to the server while the answer is awaited, because it comes in pieces or the
// server takes it in pieces: the one place where two coroutines work on one exchange. The exchange waits for
// the upload to end before it ends itself.
//
// The client's watch has one deadline for both. A deadline that was for the answer, or for its reader, ends a
// wait of the upload as well, and says nothing of it: the upload then waits again, with its time counted.
#pragma once

#include "proxy/upstream/server_attempt.hpp"

#include "weir/net/signal.hpp"
#include "weir/net/task.hpp"
#include "weir/proxy/min_rate.hpp"
#include "weir/proxy/relay.hpp"

#include <string>
#include <string_view>

namespace weir::proxy {

class Upload {
 public:
  // `head`: what the server has not taken of the request's head. The others outlive the upload.
  Upload(ExchangeContext& context, ServerAttempt& attempt, std::string_view head);

  // Throws if it cannot begin; then it has ended already.
  void start();
  // Stops the upload where it is. Returns what to wait for until it has ended.
  [[nodiscard]] net::Signal::Wait end() noexcept;

  // All of the body went to the server.
  [[nodiscard]] bool is_sent() const noexcept { return sent_; }

  // The client waits for 100 Continue from the server before it sends any of its body.
  [[nodiscard]] bool is_expectant() const noexcept { return expectant_; }
  // The client sends its body from now on: it was told to, or does not wait for that.
  void begin_body() noexcept;
  // Returns true if time has run out for the 100 Continue alone, and not for the answer.
  [[nodiscard]] bool is_word_overdue() const noexcept;
  // Gives up the wait for the 100 Continue. Returns true if it was under way; the server then has the time
  // that it has for an answer.
  [[nodiscard]] bool suspend_word() noexcept;
  // Goes on with the wait for the 100 Continue.
  void await_continue() noexcept;
  // Must be called if the 100 Continue is overdue: it is not waited for any more.
  void forget_word() noexcept { word_deadline_ = false; }

 private:
  enum class Next : std::uint8_t { Wait, Advance, End };

  [[nodiscard]] net::Task<void> run();
  [[nodiscard]] Next judge_wait(const net::ErrorCode& ec, bool reading, MinRateCheck& pace);
  void finish(Relay::Need need, BodySource::Status status);
  void fail(unsigned status, bool slow) noexcept;
  void arm_for_more(bool reading) noexcept;
  void arm_since_head(base::Duration time) noexcept;
  void end_body() noexcept;

  ExchangeContext& context_;
  ServerAttempt& attempt_;
  net::Signal finished_;           // raised when done
  std::string out_;                // framing under way; at first what is left of the head
  const base::Duration response_;  // the server has for an answer, and for each wait until it takes more
  const base::Duration word_;      // it has to say that it wants the body
  base::TimePoint began_{};        // the client sends since
  base::TimePoint since_{};        // it is waited for, if its pace counts; else the epoch
  bool done_ = false;
  bool sent_ = false;
  bool stop_ = false;  // the answer is over: send no more
  bool expectant_ = false;
  bool word_deadline_ = false;  // the watch's deadline is that of the 100 Continue
};

// Counts the fault, and notes it for the log.
void note_body_fault(ExchangeContext& context, const BodyFault& fault);
// REQUIRES a fault.
[[nodiscard]] LocalError error_of(const BodyFault& fault) noexcept;

}  // namespace weir::proxy
