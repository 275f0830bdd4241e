#include "proxy/upload.hpp"

#include "proxy/session.hpp"

#include <exception>

namespace weir::proxy {

net::Task<Exchange::Ending> Exchange::refuse_body(unsigned status) {
  using observe::ClientError;
  failure_ = status == 503 ? "out_of_memory" : "bad_body";
  if (status == 503) return error(status, "this server is out of memory; please retry");
  if (status == 400) return error(status, "the request body is malformed or incomplete");
  const bool late = status == 408;
  if (slow_) failure_ = "slow_body";
  worker_.counters
      .client_errors(slow_  ? ClientError::SlowBody
                     : late ? ClientError::BodyTimeout
                            : ClientError::BodyTooLarge)
      .add();
  return error(status, slow_  ? "the request body comes too slowly"
                       : late ? "the request body did not come in time"
                              : "the request body is too large");
}

void Exchange::start_upload() {
  upload_ = std::make_unique<Upload>(worker_.executor);
  try {
    net::spawn(worker_.executor, upload(), [this](const std::exception_ptr& thrown) {
      if (thrown) {
        upload_->fault = 503;
        lease_.cancel();
      }
      upload_->done = true;
      upload_->finished.raise();
    });
  } catch (...) {
    upload_.reset();  // it has not begun, and nobody would say that it ended
    throw;
  }
}

net::Task<void> Exchange::upload() {
  auto& state = *upload_;
  const auto& timeouts = stay_.pool(config_.routes[*route_].upstream).settings().timeouts;
  Relay relay(*request_body_, lease_.stream(), space_->head.framing, state.out);
  Pace pace(config_.server.least_rate);
  auto need = relay.advance();
  for (unsigned pieces = 1; need == Relay::Need::Bytes || need == Relay::Need::Room; ++pieces) {
    const bool reading = need == Relay::Need::Bytes;
    if (pieces % Relay::kPiecesInTurn == 0) {
      co_await net::Pause(worker_.executor);
      if (state.stop || session_.left() || (session_.late() && !client_stalls_)) co_return;
    }
    // A client that does not take its answer gains no time by sending more.
    if (!client_stalls_) session_.arm(reading ? config_.server.body_timeout : timeouts.response);
    const auto since = reading && pace.counts() ? worker_.clock.now() : base::TimePoint{};
    const auto ec = co_await relay.wait(need);
    if (state.stop) co_return;
    // The session has one deadline. One that was for the answer's reader ended this wait as well, and says
    // nothing of it.
    const bool others = ec == net::asio::error::operation_aborted && !session_.left() && !worker_.hard_stop &&
                        (client_stalls_ || !session_.late());
    slow_ = (!ec || others) && since != base::TimePoint{} &&
            !pace.note(worker_.clock.now() - since, request_body_->filled());
    if (others && !slow_) continue;
    if (slow_ || (ec && reading)) {
      state.fault = slow_ || session_.late() ? 408 : 400;
      lease_.cancel();
    }
    if (ec || slow_) co_return;
    need = relay.advance();
  }
  if (need == Relay::Need::Source) {
    state.fault = relay.status() == BodySource::Status::TooLarge ? 413 : 400;
    lease_.cancel();
  }
  if (!client_stalls_) session_.arm(timeouts.response);
  if (answered_ == base::TimePoint{}) sent_ = worker_.clock.now();  // what took so long was the client
}

// Stops the upload where it is; what to wait for until it has ended. No coroutine: it must not fail.
net::Signal::Wait Exchange::end_upload() noexcept {
  auto& state = *upload_;
  if (!state.done) {
    state.stop = true;
    session_.client.cancel();
    lease_.cancel();
  }
  return state.finished.wait();
}

}  // namespace weir::proxy
