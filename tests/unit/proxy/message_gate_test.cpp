// Tests how much of a gRPC call's body weir may forward.
#include "proxy/exchange/message_gate.hpp"

#include "proxy/admission/admission_controller.hpp"
#include "unit/proxy/lone_worker.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::hours;

Configuration two_messages(bool closes, policy::MessageDirection direction) {
  policy::Rule rule{.name = "chat", .limiter = limit::TokenBucket::make({100, hours(1)}, 100).value()};
  rule.messages = policy::Messages{.limiter = limit::TokenBucket::make({1, hours(1)}, 2).value(),
                                   .closes = closes,
                                   .direction = direction};
  Configuration config;
  config.rules.push_back(rule);
  return config;
}

// A gRPC call that the rules have admitted.
struct Call : LoneWorker {
  explicit Call(bool closes = false, policy::MessageDirection direction = policy::MessageDirection::Client)
      : LoneWorker(two_messages(closes, direction)) {
    buffers.request.head = &buffers.head;
    buffers.rules = config.rules;
    AdmissionController controller(worker, config, buffers);
    AdmissionResult result;
    EXPECT_TRUE(controller.decide_here(clock.now(), policy::kDefaultPriority, result));
  }
  [[nodiscard]] auto gate(MessageGate::Sender sender = MessageGate::Sender::Client) {
    return MessageGate::make(worker, buffers, sender);
  }
  ExchangeBuffers buffers{worker};
};

const std::string kMessage("\0\0\0\0\3abc", 8);

TEST(MessageGate, NoOctetOfADelayedMessageIsForwarded) {
  Call call;
  const auto gate = call.gate();
  ASSERT_NE(gate, nullptr);
  EXPECT_EQ(gate->admit(kMessage + kMessage + kMessage), 16U);
  EXPECT_GT(gate->wait(), hours(0));
  EXPECT_LE(gate->wait(), std::chrono::seconds(1)) << "though the next message may pass in an hour";
  EXPECT_FALSE(gate->refuses());
  EXPECT_EQ(gate->admit(kMessage), 0U) << "still held back";
}

TEST(MessageGate, MessageThatArrivesInManyPiecesIsCountedOnce) {
  Call call;
  const auto gate = call.gate();
  for (const char octet : kMessage + kMessage) EXPECT_EQ(gate->admit({&octet, 1}), 1U);
  EXPECT_EQ(gate->admit(kMessage.substr(0, 1)), 0U);
}

TEST(MessageGate, MessageAboveTheLimitIsRefusedIfTheRuleEndsCalls) {
  Call call(true);
  const auto gate = call.gate();
  EXPECT_EQ(gate->admit(kMessage + kMessage), 16U);
  EXPECT_FALSE(gate->refuses());
  EXPECT_EQ(gate->admit(kMessage), 0U);
  EXPECT_TRUE(gate->refuses());
  EXPECT_EQ(gate->admit(kMessage), 0U);
  EXPECT_EQ(call.counters.messages(0, observe::MessageOutcome::Refused).value(), 1U) << "counted once";
}

TEST(MessageGate, GateIsMadeOnlyForASideWhoseMessagesAreLimited) {
  EXPECT_EQ(Call().gate(MessageGate::Sender::Server), nullptr);
  Call of_server(false, policy::MessageDirection::Server);
  EXPECT_EQ(of_server.gate(), nullptr);
  EXPECT_NE(of_server.gate(MessageGate::Sender::Server), nullptr);
}

}  // namespace
}  // namespace weir::proxy
