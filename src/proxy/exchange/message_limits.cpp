#include "proxy/exchange/message_limits.hpp"

#include "proxy/exchange/exchange_buffers.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <algorithm>
#include <limits>

namespace weir::proxy {

using observe::MessageOutcome;

static_assert(limit::kMaxCharges <= std::numeric_limits<std::uint32_t>::digits, "a bit for each");

namespace {

// Calls visit(Rule, Charge) for each rule that matched the request and limits messages of this sender.
// `Charge`: the charge that the rule made for the request.
template <class Visit>
void for_each_limit(const ExchangeBuffers& buffers, MessageLimits::Sender sender, Visit visit) {
  using policy::MessageDirection;
  const auto other =
      sender == MessageLimits::Sender::Client ? MessageDirection::Server : MessageDirection::Client;
  const auto counts = [&](const policy::Rule& rule) {
    return rule.messages && rule.messages->direction != other;
  };
  for (const auto* bill : {&buffers.evaluation.local, &buffers.evaluation.remote})
    for (std::size_t i = 0; i < bill->charges().size(); ++i) {
      const auto& [rule, applied, descriptors, overdraft] = bill->source(i);
      if (!applied.counted && counts(*rule)) visit(*rule, bill->charges()[i]);
    }
  for (const auto& line : buffers.unanswered)
    if (counts(*line.rule)) visit(*line.rule, line.charge);
}

}  // namespace

MessageLimits::MessageLimits(Worker& worker, const ExchangeBuffers& buffers, Sender sender)
    : worker_(worker) {
  for_each_limit(buffers, sender,
                 [this](const policy::Rule& rule, const limit::Charge& charge) { add(rule, charge); });
}

bool MessageLimits::would_count(const ExchangeBuffers& buffers, Sender sender) noexcept {
  bool counts = false;
  for_each_limit(buffers, sender, [&](const policy::Rule&, const limit::Charge&) { counts = true; });
  return counts;
}

void MessageLimits::add(const policy::Rule& rule, const limit::Charge& of_requests) {
  if (charges_.size() == charges_.capacity()) return;
  charges_.push_back({.key = policy::message_key(of_requests.key),
                      .limiter = rule.messages->limiter.get(),
                      .rule = of_requests.rule,
                      .enforced = of_requests.enforced,
                      .limiter_id = policy::message_limiter_id(rule)});
  rules_.push_back(&rule);
  enforced_ = enforced_ || of_requests.enforced;
}

MessageLimits::MessageVerdict MessageLimits::ask() {
  MessageVerdict verdict;
  if (charges_.empty()) return verdict;
  const std::span charges(charges_.data(), charges_.size());
  verdict.admitted =
      worker_.table.charge(charges, worker_.clock.now(), std::span(outcomes_).first(charges.size()));
  for (std::size_t i = 0; i < charges.size() && !verdict.admitted; ++i) {
    if (outcomes_[i].allowed || !charges[i].enforced) continue;
    refused_by_ |= std::uint32_t{1} << i;
    verdict.closes = verdict.closes || rules_[i]->messages->closes;
    verdict.wait = std::max(verdict.wait, outcomes_[i].retry_after);
  }
  if (verdict.admitted || verdict.closes) count(verdict.admitted);
  return verdict;
}

// Adds the current message to the rules' metrics. Called once for each message: when the message is admitted,
// or when it ends the connection or call (`admitted` is false). In the second case, counts the message only
// for the rules that refused it or, in shadow mode, would have refused it.
void MessageLimits::count(bool admitted) {
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    const bool refused = (refused_by_ >> i & 1U) != 0;
    const auto rule = rules_[i]->index;
    if (!charges_[i].enforced && !outcomes_[i].allowed)
      worker_.counters.messages(rule, MessageOutcome::ShadowRefused).add();
    else if (admitted)
      worker_.counters.messages(rule, refused ? MessageOutcome::Delayed : MessageOutcome::Admitted).add();
    else if (refused)
      worker_.counters.messages(rule, MessageOutcome::Refused).add();
  }
  refused_by_ = 0;
}

}  // namespace weir::proxy
