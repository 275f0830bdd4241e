// What rules with `messages` say to the messages of one WebSocket's client.
//
// Counted by the rule's key in this process's table, beside the requests that the rule counts: all
// connections of a client together, wherever the rule keeps its requests. Part of one tunnel.
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
  // Those of the rules that the request met, whether or not Redis could be asked. `buffers`: of the exchange,
  // before it is cleared.
  MessageLimits(Worker& worker, const ExchangeBuffers& buffers);

  // Some rule counts messages; some enforced rule does.
  [[nodiscard]] bool counts() const noexcept { return !charges_.empty(); }
  [[nodiscard]] bool enforced() const noexcept { return enforced_; }

  struct MessageVerdict {
    bool admitted = true;
    bool closes = false;     // a rule that refuses it ends the connection
    base::Duration wait{0};  // else: after which it may be admitted
  };
  // Charges one message to all rules, or to none.
  [[nodiscard]] MessageVerdict ask();

 private:
  void gather(const policy::Bill& bill);
  void add(const policy::Rule& rule, const limit::Charge& of_requests);
  void count(bool admitted);

  Worker& worker_;
  boost::container::static_vector<limit::Charge, limit::kMaxCharges> charges_;
  boost::container::static_vector<const policy::Rule*, limit::kMaxCharges> rules_;
  std::array<limit::Outcome, limit::kMaxCharges> outcomes_;
  std::uint32_t refused_by_ = 0;  // of the message under way: a bit for each
  bool enforced_ = false;
};

}  // namespace weir::proxy
