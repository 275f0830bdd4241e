#include "proxy/upstream/protocol_upgrade.hpp"

#include "proxy/admission/rate_limit_headers.hpp"
#include "proxy/exchange/body_inspector.hpp"
#include "proxy/exchange/scoped_cancel_target.hpp"
#include "proxy/upstream/tunnel.hpp"

namespace weir::proxy {

void ProtocolUpgrade::cancel() noexcept {
  if (tunnel_ != nullptr) tunnel_->cancel();
}

net::Task<std::optional<Outcome>> ProtocolUpgrade::run() {
  auto& buffers = context_.buffers;
  auto& client = context_.client;
  context_.settle(buffers.response.status, &buffers.response);
  keep_stricter(buffers.response.fields, buffers.rate_limit_headers);
  context_.edit_answer(buffers.response.fields);
  context_.report.status = buffers.response.status;
  buffers.answer.unpin();
  context_.watch.arm(context_.config.server.write_timeout);
  const auto ec =
      co_await client.send_upgrade(buffers.response, attempt_.upgrade, buffers.rate_limit_headers);
  if (ec) co_return end(observe::TunnelEnd::ClientBroke);
  std::optional<MessageLimits> limits;
  if (attempt_.upgrade == "websocket")
    limits.emplace(context_.worker, buffers, MessageLimits::Sender::Client);
  release_body(buffers);
  const bool counted = limits && limits->counts();
  const auto octets = client.octets();
  Tunnel tunnel(context_.worker, context_.watch, octets.stream, octets.inbox, attempt_.lease.connection(),
                buffers.answer, attempt_.pool.settings().timeouts.tunnel, counted ? &*limits : nullptr);
  if (attempt_.pacing) tunnel.pace(*attempt_.pacing);
  const ScopedCancelTarget cancel_target(tunnel_, tunnel);
  const auto tunnel_end = co_await tunnel.run();
  context_.read_clock();
  context_.report.tunnel_in = tunnel.bytes_up();
  context_.report.body_out = tunnel.bytes_down();
  co_return end(tunnel_end);
}

Outcome ProtocolUpgrade::end(observe::TunnelEnd end) {
  context_.watch.clear_late();
  auto& failure = context_.report.failure;
  switch (end) {
    case observe::TunnelEnd::Closed:
      return {.ending = Ending::Close};
    case observe::TunnelEnd::Idle:
      failure = "tunnel_idle";
      return {.ending = Ending::Close};
    case observe::TunnelEnd::Stopped:
      failure = "stopped";
      return {.ending = Ending::Close};
    case observe::TunnelEnd::Refused:
      failure = "message_limit";
      return {.ending = Ending::Answered};
    case observe::TunnelEnd::Faulty:
      failure = "bad_frame";
      return {.ending = Ending::Answered};
    case observe::TunnelEnd::ClientBroke:
      context_.note_client_error(observe::ClientError::Left, "client_left");
      return {.ending = Ending::Abort};
    case observe::TunnelEnd::ServerBroke:
      failure = "upstream_truncated";
      attempt_.tallies.failures.add();
      return {.ending = Ending::Abort};
  }
  return {.ending = Ending::Abort};
}

}  // namespace weir::proxy
