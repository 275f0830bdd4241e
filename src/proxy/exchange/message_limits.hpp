// Limits the messages of one WebSocket client by the rules that have `messages`.
//
// Messages are counted by the rule's key in this process's table, even if the rule counts its requests in
// Redis. All connections of a client share the count. Belongs to one tunnel.
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
  // Gathers the limits of the rules that matched the request, even if Redis was unreachable. `buffers`: those
  // of the exchange, not yet cleared.
  MessageLimits(Worker& worker, const ExchangeBuffers& buffers);

  // Returns true if any rule, or any enforced rule, counts messages.
  [[nodiscard]] bool counts() const noexcept { return !charges_.empty(); }
  [[nodiscard]] bool enforced() const noexcept { return enforced_; }

  struct MessageVerdict {
    bool admitted = true;
    bool closes = false;     // a rule that refuses the message closes the connection
    base::Duration wait{0};  // if not admitted and not closing: time until a retry may succeed
  };
  // Charges one message to all rules, or to no rule.
  [[nodiscard]] MessageVerdict ask();

 private:
  void gather(const policy::Bill& bill);
  void add(const policy::Rule& rule, const limit::Charge& of_requests);
  void count(bool admitted);

  Worker& worker_;
  boost::container::static_vector<limit::Charge, limit::kMaxCharges> charges_;
  boost::container::static_vector<const policy::Rule*, limit::kMaxCharges> rules_;
  std::array<limit::Outcome, limit::kMaxCharges> outcomes_;
  std::uint32_t refused_by_ = 0;  // rules that refused the current message: bit i for charges_[i]
  bool enforced_ = false;
};

}  // namespace weir::proxy
