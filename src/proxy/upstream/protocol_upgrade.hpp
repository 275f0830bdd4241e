// A request whose connection changes its protocol: passes the server's 101 on, then moves octets both ways.
#pragma once

#include "proxy/upstream/server_attempt.hpp"

#include "weir/net/task.hpp"

#include <optional>

namespace weir::proxy {

class Tunnel;

class ProtocolUpgrade {
 public:
  // Both outlive it.
  ProtocolUpgrade(ExchangeContext& context, ServerAttempt& attempt) noexcept
      : context_(context), attempt_(attempt) {}

  // Holds what the request holds until the tunnel ends.
  [[nodiscard]] net::Task<std::optional<Outcome>> run();
  void cancel() noexcept;

 private:
  [[nodiscard]] Outcome end(observe::TunnelEnd end);

  ExchangeContext& context_;
  ServerAttempt& attempt_;
  Tunnel* tunnel_ = nullptr;  // while it lasts
};

}  // namespace weir::proxy
