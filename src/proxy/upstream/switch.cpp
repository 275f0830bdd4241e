// The part of an exchange whose connection changes its protocol.
#include "proxy/admission/standing.hpp"
#include "proxy/client/session.hpp"
#include "proxy/exchange/in_hand.hpp"
#include "proxy/upstream/attempt.hpp"
#include "proxy/upstream/tunnel.hpp"
#include "proxy/upstream/upload.hpp"

#include "weir/http/forwarding.hpp"
#include "weir/http/upgrade.hpp"

#include <optional>

namespace weir::proxy {

// Of a 101: whether it is what was asked for, by a request that has gone whole: what a client sends behind it
// would else stand in the midst of its head.
bool Exchange::may_switch(Attempt& attempt) const noexcept {
  if (upload_ && !upload_->sent) {
    attempt.what = "the upstream switched protocols before it had the whole request";
    return false;
  }
  if (!attempt.upgrade.empty() && http::switches_to(space_->response, attempt.upgrade)) return true;
  attempt.what = attempt.upgrade.empty() ? "the upstream switched protocols unasked"
                                         : "the upstream switched to another protocol than it was asked for";
  return false;
}

// Holds what the request holds until the tunnel ends.
net::Task<Exchange::Ending> Exchange::tunnel(upstream::Pool& pool, const Attempt& attempt) {
  auto& space = *space_;
  if (gate_.settlements().due()) settle(space.response.status, &space.response);
  space.out.clear();
  keep_stricter(space.response.fields, space.standing);
  http::write_switch_head(space.out, space.response, attempt.upgrade, space.standing);
  report_.status = space.response.status;
  space.answer.unpin();
  session_.arm(config_.server.write_timeout);
  const auto ec = co_await session_.client.write(space.out);
  if (ec) co_return leave_tunnel(observe::TunnelEnd::ClientBroke);
  worker_.counters.bytes_out.add(space.out.size());
  std::optional<MessageLimits> limits;
  if (attempt.upgrade == "websocket") limits.emplace(worker_, space);
  release_body();
  const bool counted = limits && limits->counts();
  Tunnel tunnel(session_, lease_.stream(), space.answer, pool.settings().timeouts.tunnel,
                counted ? &*limits : nullptr);
  const InHand in_hand(tunnel_, tunnel);
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
