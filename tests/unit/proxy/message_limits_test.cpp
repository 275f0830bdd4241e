// Tests which rules limit the messages of a WebSocket or a gRPC call, and under which keys they count the
// messages.
#include "proxy/exchange/message_limits.hpp"

#include "proxy/admission/admission_controller.hpp"
#include "unit/proxy/lone_worker.hpp"

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using policy::OnStoreFailure;

Configuration two_messages_a_client(policy::Store store, OnStoreFailure on_failure) {
  policy::Rule rule{.name = "chat",
                    .limiter = limit::TokenBucket::make({100, std::chrono::seconds(1)}, 100).value()};
  rule.key = {*policy::parse_key_part("api_key")};
  rule.store = store;
  rule.on_store_failure = on_failure;
  rule.messages =
      policy::Messages{.limiter = limit::TokenBucket::make({1, std::chrono::hours(1)}, 2).value()};
  Configuration config;
  config.rules.push_back(rule);
  return config;
}

// A worker whose Redis is unreachable, and requests that each open a WebSocket.
struct Chat : LoneWorker {
  explicit Chat(const Configuration& a_config, const redis::RedisSettings* redis = nullptr)
      : LoneWorker(a_config, redis) {}

  // Opens a WebSocket, sends ten messages at once, and returns how many of them were admitted.
  int passed(std::string_view api_key, MessageLimits::Sender sender = MessageLimits::Sender::Client) {
    ExchangeBuffers buffers(worker);
    buffers.request.head = &head;
    buffers.rules = config.rules;
    buffers.request.client.api_key = api_key;
    AdmissionController gate(worker, config, buffers);
    AdmissionResult admission_result;
    if (!gate.decide_here(clock.now(), policy::kDefaultPriority, admission_result))
      net::spawn(context.get_executor(), ask_redis(gate, admission_result), [](const std::exception_ptr&) {});
    EXPECT_EQ(admission_result.decision.verdict, policy::Verdict::Forward);
    EXPECT_EQ(MessageLimits::would_count(buffers, sender), MessageLimits(worker, buffers, sender).counts());
    MessageLimits limits(worker, buffers, sender);
    int admitted = 0;
    for (int i = 0; i < 10; ++i) admitted += limits.counts() && !limits.ask().admitted ? 0 : 1;
    return admitted;
  }

  static net::Task<void> ask_redis(AdmissionController& gate, AdmissionResult& admission_result) {
    admission_result = co_await gate.ask_redis();
  }

  http::RequestHead head;
};

TEST(MessageLimits, ConnectionsOfOneClientShareTheMessageLimit) {
  Chat chat(two_messages_a_client(policy::Store::Memory, OnStoreFailure::Local));
  EXPECT_EQ(chat.passed("a"), 2);
  EXPECT_EQ(chat.passed("a"), 0);
  EXPECT_EQ(chat.passed("b"), 2);
}

TEST(MessageLimits, OnlyMessagesInTheDirectionOfTheRuleCount) {
  using policy::MessageDirection;
  using Sender = MessageLimits::Sender;
  const auto admitted = [](MessageDirection direction, Sender sender) {
    auto config = two_messages_a_client(policy::Store::Memory, OnStoreFailure::Local);
    config.rules[0].messages->direction = direction;
    return Chat(config).passed("a", sender);
  };
  EXPECT_EQ(admitted(MessageDirection::Client, Sender::Client), 2);
  EXPECT_EQ(admitted(MessageDirection::Client, Sender::Server), 10) << "no limit";
  EXPECT_EQ(admitted(MessageDirection::Server, Sender::Client), 10) << "no limit";
  EXPECT_EQ(admitted(MessageDirection::Server, Sender::Server), 2);
  auto config = two_messages_a_client(policy::Store::Memory, OnStoreFailure::Local);
  config.rules[0].messages->direction = MessageDirection::Both;
  Chat both(config);
  EXPECT_EQ(both.passed("a", Sender::Server), 2);
  EXPECT_EQ(both.passed("a", Sender::Client), 0) << "both sides share one limit";
}

TEST(MessageLimits, ApplyToConnectionsOpenedWhileRedisWasUnreachable) {
  const redis::RedisSettings settings;
  for (const auto on_failure : {OnStoreFailure::Local, OnStoreFailure::Open}) {
    Chat chat(two_messages_a_client(policy::Store::Redis, on_failure), &settings);
    EXPECT_EQ(chat.passed("a"), 2);
    EXPECT_EQ(chat.passed("a"), 0);
    EXPECT_EQ(chat.passed("b"), 2);
  }
}

}  // namespace
}  // namespace weir::proxy
