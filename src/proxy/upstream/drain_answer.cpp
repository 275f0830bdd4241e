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
  if (!context_.admission.needs_answer(timeouts.abandoned)) co_return;
  context_.session.client.close();
  context_.watch.clear_late();
  auto& settlements = context_.admission.settlements();
  const auto end = context_.worker.clock.now() + timeouts.abandoned;
  unsigned pieces = 0;
  while (!body.complete() && !context_.worker.hard_stop) {
    std::string_view piece;
    const auto status = body.take(piece);
    if (auto* watch = settlements.watch()) {
      if (status == BodySource::Status::Piece) watch->see(piece);
      if (status == BodySource::Status::End) watch->complete();
    }
    if (status == BodySource::Status::Piece) continue;
    if (status != BodySource::Status::NeedBytes ||
        !context_.admission.needs_answer(end - context_.worker.clock.now()))
      break;
    context_.watch.arm(
        std::min(std::max(end - context_.worker.clock.now(), base::Duration{1}), timeouts.response));
    const auto ec = co_await body.fill();
    if (ec) break;
    if (++pieces % Relay::kPiecesInTurn == 0) co_await net::Pause(context_.worker.executor);
  }
  context_.watch.disarm();
  context_.read_clock();
  context_.worker.counters.abandoned(body.complete()).add();
  const auto& answer = context_.buffers.response;
  const bool in_step = body.complete() && answer.keep_alive && context_.buffers.answer.empty() &&
                       answer.framing != http::Framing::UntilClose;
  if (in_step) lease_.keep();
}

}  // namespace weir::proxy
