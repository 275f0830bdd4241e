// The part of an exchange whose connection changes its protocol.
#include "proxy/admission/rate_limit_headers.hpp"
#include "proxy/client/session.hpp"
#include "proxy/exchange/body_inspector.hpp"
#include "proxy/exchange/scoped_cancel_target.hpp"
#include "proxy/upstream/attempt.hpp"
#include "proxy/upstream/tunnel.hpp"
#include "proxy/upstream/upload.hpp"

#include "weir/http/forwarding.hpp"
#include "weir/http/upgrade.hpp"

#include <optional>

namespace weir::proxy {

// Of a 101: whether it is what was asked for, by a request that has gone whole: what a client sends behind it
// would else stand in the midst of its head.
bool Exchange::may_upgrade(Attempt& attempt) const noexcept {
  if (upload_ && !upload_->sent) {
    attempt.what = "the upstream switched protocols before it had the whole request";
    return false;
  }
  if (!attempt.upgrade.empty() && http::switches_to(context_.buffers.response, attempt.upgrade)) return true;
  attempt.what = attempt.upgrade.empty() ? "the upstream switched protocols unasked"
                                         : "the upstream switched to another protocol than it was asked for";
  return false;
}

// Holds what the request holds until the tunnel ends.
net::Task<Ending> Exchange::tunnel(upstream::Pool& pool, const Attempt& attempt) {
  auto& buffers = context_.buffers;
  context_.settle(buffers.response.status, &buffers.response);
  buffers.out.clear();
  keep_stricter(buffers.response.fields, buffers.rate_limit_headers);
  http::write_switch_head(buffers.out, buffers.response, attempt.upgrade, buffers.rate_limit_headers);
  context_.report.status = buffers.response.status;
  buffers.answer.unpin();
  context_.watch.arm(context_.config.server.write_timeout);
  const auto ec = co_await context_.session.client.write(buffers.out);
  if (ec) co_return leave_tunnel(observe::TunnelEnd::ClientBroke);
  context_.worker.counters.bytes_out.add(buffers.out.size());
  std::optional<MessageLimits> limits;
  if (attempt.upgrade == "websocket") limits.emplace(context_.worker, buffers);
  release_body(context_.buffers);
  const bool counted = limits && limits->counts();
  Tunnel tunnel(session_, lease_.stream(), buffers.answer, pool.settings().timeouts.tunnel,
                counted ? &*limits : nullptr);
  const ScopedCancelTarget cancel_target(tunnel_, tunnel);
  const auto end = co_await tunnel.run();
  context_.read_clock();
  context_.report.tunnel_in = tunnel.bytes_up();
  context_.report.body_out = tunnel.bytes_down();
  co_return leave_tunnel(end);
}

Ending Exchange::leave_tunnel(observe::TunnelEnd end) {
  context_.watch.clear_late();
  switch (end) {
    case observe::TunnelEnd::Closed:
      return Ending::Close;
    case observe::TunnelEnd::Idle:
      context_.report.failure = "tunnel_idle";
      return Ending::Close;
    case observe::TunnelEnd::Stopped:
      context_.report.failure = "stopped";
      return Ending::Close;
    case observe::TunnelEnd::Refused:
      context_.report.failure = "message_limit";
      return Ending::Linger;
    case observe::TunnelEnd::Faulty:
      context_.report.failure = "bad_frame";
      return Ending::Linger;
    case observe::TunnelEnd::ClientBroke:
      context_.report.failure = "client_left";
      context_.worker.counters.client_errors(observe::ClientError::Left).add();
      return Ending::Abort;
    case observe::TunnelEnd::ServerBroke:
      context_.report.failure = "upstream_truncated";
      tallies().failures.add();
      return Ending::Abort;
  }
  return Ending::Abort;
}

}  // namespace weir::proxy
