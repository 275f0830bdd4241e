// A request that upgrades its connection: forwards the server's 101, then relays octets both ways. A part of
// UpstreamExchange; only the worker's thread uses it.
#pragma once

#include "proxy/upstream/server_attempt.hpp"

#include "weir/net/task.hpp"

#include <optional>

namespace weir::proxy {

class Tunnel;

class ProtocolUpgrade {
 public:
  // Both arguments must outlive this object.
  ProtocolUpgrade(ExchangeContext& context, ServerAttempt& attempt) noexcept
      : context_(context), attempt_(attempt) {}

  // Runs until the tunnel ends. The request's permits remain held until then.
  [[nodiscard]] net::Task<std::optional<Outcome>> run();
  void cancel() noexcept;

 private:
  [[nodiscard]] Outcome end(observe::TunnelEnd end);

  ExchangeContext& context_;
  ServerAttempt& attempt_;
  Tunnel* tunnel_ = nullptr;  // set while the tunnel runs
};

}  // namespace weir::proxy
