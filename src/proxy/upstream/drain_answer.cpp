// The part of an exchange whose client has left before the end of its answer, while a rule waits for that
// end: the answer says what the request costs, or the server's work is what a place stands for.
#include "proxy/client/session.hpp"
#include "proxy/exchange/exchange.hpp"

#include <algorithm>

namespace weir::proxy {

// Reads the rest of the answer and drops it, for at most `timeouts.abandoned`, and as long as somebody needs
// it. The client's connection ends at once.
net::Task<void> Exchange::drain_answer(const upstream::Pool& pool, BodySource& body) {
  const auto& timeouts = pool.settings().timeouts;
  if (!admission_.needs_answer(timeouts.abandoned)) co_return;
  session_.client.close();
  session_.clear_late();
  auto& settlements = admission_.settlements();
  const auto end = worker_.clock.now() + timeouts.abandoned;
  unsigned pieces = 0;
  while (!body.complete() && !worker_.hard_stop) {
    std::string_view piece;
    const auto status = body.take(piece);
    if (auto* watch = settlements.watch()) {
      if (status == BodySource::Status::Piece) watch->see(piece);
      if (status == BodySource::Status::End) watch->complete();
    }
    if (status == BodySource::Status::Piece) continue;
    if (status != BodySource::Status::NeedBytes || !admission_.needs_answer(end - worker_.clock.now())) break;
    session_.arm(std::min(std::max(end - worker_.clock.now(), base::Duration{1}), timeouts.response));
    const auto ec = co_await body.fill();
    if (ec) break;
    if (++pieces % Relay::kPiecesInTurn == 0) co_await net::Pause(worker_.executor);
  }
  session_.disarm();
  latest_ = worker_.clock.now();
  worker_.counters.abandoned(body.complete()).add();
  const auto& answer = buffers_->response;
  const bool in_step = body.complete() && answer.keep_alive && buffers_->answer.empty() &&
                       answer.framing != http::Framing::UntilClose;
  if (in_step) lease_.keep();
}

}  // namespace weir::proxy
