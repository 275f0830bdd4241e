// Limits the messages of one WebSocket client, or of one side of a gRPC call, by the rules that have
// `messages`.
//
// This process's key table counts the messages under the rule's key, even if the rule counts its requests in
// Redis. All connections and calls of a client share the count, and both sides of a call share it, too. A
// MessageLimits belongs to one tunnel, or to one side of a call.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/observe/counters.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/proxy/worker.hpp"

#include <array>
#include <cstdint>
#include <optional>

#include <boost/container/static_vector.hpp>

namespace weir::proxy {

struct ExchangeBuffers;

class MessageLimits {
 public:
  enum class Sender : std::uint8_t { Client, Server };

  // Collects the message limits of the rules that matched the request, even if Redis was unreachable.
  // `buffers`: the buffers of the exchange, which must not have been cleared yet. `worker` and the rules must
  // outlive this object.
  MessageLimits(Worker& worker, const ExchangeBuffers& buffers, Sender sender);
  // Returns true if a MessageLimits with these arguments would count messages.
  [[nodiscard]] static bool would_count(const ExchangeBuffers& buffers, Sender sender) noexcept;

  // counts() returns true if any rule limits messages; enforced() returns true if any enforced rule does.
  [[nodiscard]] bool counts() const noexcept { return !charges_.empty(); }
  [[nodiscard]] bool enforced() const noexcept { return enforced_; }

  struct MessageVerdict {
    bool admitted = true;
    bool closes = false;  // a rule that refuses the message requires that the connection or call ends
    // valid if the message is refused but `closes` is false: time until the message may be admitted
    base::Duration wait{0};
  };
  // Charges one message to all rules. If an enforced rule refuses the message, charges nothing.
  [[nodiscard]] MessageVerdict ask();

 private:
  void add(const policy::Rule& rule, const limit::Charge& of_requests);
  void count(bool admitted);

  Worker& worker_;
  boost::container::static_vector<limit::Charge, limit::kMaxCharges> charges_;
  boost::container::static_vector<const policy::Rule*, limit::kMaxCharges> rules_;
  std::array<limit::Outcome, limit::kMaxCharges> outcomes_;
  std::uint32_t refused_by_ = 0;  // the rules that refused the current message; bit i stands for charges_[i]
  bool enforced_ = false;
};

}  // namespace weir::proxy
