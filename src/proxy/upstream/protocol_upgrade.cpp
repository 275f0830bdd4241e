// The part of an exchange whose connection changes its protocol.
#include "proxy/admission/rate_limit_headers.hpp"
#include "proxy/client/session.hpp"
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
  if (!attempt.upgrade.empty() && http::switches_to(buffers_->response, attempt.upgrade)) return true;
  attempt.what = attempt.upgrade.empty() ? "the upstream switched protocols unasked"
                                         : "the upstream switched to another protocol than it was asked for";
  return false;
}

// Holds what the request holds until the tunnel ends.
net::Task<Exchange::Ending> Exchange::tunnel(upstream::Pool& pool, const Attempt& attempt) {
  auto& buffers = *buffers_;
  if (admission_.settlements().due()) settle(buffers.response.status, &buffers.response);
  buffers.out.clear();
  keep_stricter(buffers.response.fields, buffers.rate_limit_headers);
  http::write_switch_head(buffers.out, buffers.response, attempt.upgrade, buffers.rate_limit_headers);
  report_.status = buffers.response.status;
  buffers.answer.unpin();
  session_.arm(config_.server.write_timeout);
  const auto ec = co_await session_.client.write(buffers.out);
  if (ec) co_return leave_tunnel(observe::TunnelEnd::ClientBroke);
  worker_.counters.bytes_out.add(buffers.out.size());
  std::optional<MessageLimits> limits;
  if (attempt.upgrade == "websocket") limits.emplace(worker_, buffers);
  release_body();
  const bool counted = limits && limits->counts();
  Tunnel tunnel(session_, lease_.stream(), buffers.answer, pool.settings().timeouts.tunnel,
                counted ? &*limits : nullptr);
  const ScopedCancelTarget cancel_target(tunnel_, tunnel);
  const auto end = co_await tunnel.run();
  latest_ = worker_.clock.now();
  report_.tunnel_in = tunnel.bytes_up();
  report_.body_out = tunnel.bytes_down();
  co_return leave_tunnel(end);
}

Exchange::Ending Exchange::leave_tunnel(observe::TunnelEnd end) {
  session_.clear_late();
  switch (end) {
    case observe::TunnelEnd::Closed:
      return Ending::Close;
    case observe::TunnelEnd::Idle:
      report_.failure = "tunnel_idle";
      return Ending::Close;
    case observe::TunnelEnd::Stopped:
      report_.failure = "stopped";
      return Ending::Close;
    case observe::TunnelEnd::Refused:
      report_.failure = "message_limit";
      return Ending::Linger;
    case observe::TunnelEnd::Faulty:
      report_.failure = "bad_frame";
      return Ending::Linger;
    case observe::TunnelEnd::ClientBroke:
      report_.failure = "client_left";
      worker_.counters.client_errors(observe::ClientError::Left).add();
      return Ending::Abort;
    case observe::TunnelEnd::ServerBroke:
      report_.failure = "upstream_truncated";
      tallies().failures.add();
      return Ending::Abort;
  }
  return Ending::Abort;
}

}  // namespace weir::proxy
