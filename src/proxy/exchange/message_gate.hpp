// Limits the messages that one side of a gRPC call sends. A message is counted when its first octet arrives,
// and weir forwards no octet of the message earlier. UpstreamExchange owns its gates; only the worker's
// thread uses them.
#pragma once

#include "proxy/exchange/message_limits.hpp"

#include "weir/http/grpc_messages.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"
#include "weir/proxy/body_gate.hpp"

#include <cstddef>
#include <memory>
#include <string_view>

namespace weir::proxy {

class MessageGate final : public BodyGate {
 public:
  using Sender = MessageLimits::Sender;

  MessageGate(Worker& worker, const ExchangeBuffers& buffers, Sender sender)
      : limits_(worker, buffers, sender), pause_(worker.executor) {}
  // Returns null if no rule limits the messages of this side. `buffers`: the buffers of a gRPC call, which
  // must not have been cleared yet.
  [[nodiscard]] static std::unique_ptr<MessageGate> make(Worker& worker, const ExchangeBuffers& buffers,
                                                         Sender sender);

  [[nodiscard]] std::size_t admit(std::string_view octets) override;
  // Returns true if the next message must end the call, because it exceeds the limit of a rule.
  [[nodiscard]] bool refuses() const noexcept { return refuses_; }
  // Returns the time until the next message may be admitted, but at most a second. So at least once a second,
  // callers check whether the client has disconnected.
  [[nodiscard]] base::Duration wait() const noexcept { return wait_; }
  // Waits for the time that wait() returns. Returns operation_aborted after cancel().
  [[nodiscard]] net::Task<net::ErrorCode> hold();
  void cancel() noexcept { pause_.cancel(); }

 private:
  MessageLimits limits_;
  http::GrpcMessageScanner scanner_;
  net::Timer pause_;
  base::Duration wait_{0};
  bool refuses_ = false;
};

}  // namespace weir::proxy
