// Tests the order of an upgrade's steps, and the messages between the old and the new process.
#include "weir/observe/space_saving.hpp"
#include "weir/upgrade/connection_transfer.hpp"
#include "weir/upgrade/handed_alerts.hpp"
#include "weir/upgrade/handed_state.hpp"
#include "weir/upgrade/takeover.hpp"
#include "weir/upgrade/upgrade_channel.hpp"
#include "weir/upgrade/upgrade_steps.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace weir::upgrade {
namespace {

using enum UpgradeStage;
using Event = UpgradeEvent;
using Action = UpgradeAction;

TEST(UpgradeSteps, NewProcessServesAfterTheLastStep) {
  EXPECT_EQ(step(Idle, Event::Begun), (UpgradeStep{Starting, Action::Start}));
  EXPECT_EQ(step(Starting, Event::Ready), (UpgradeStep{Pausing, Action::Pause}));
  EXPECT_EQ(step(Pausing, Event::Paused), (UpgradeStep{Restoring, Action::SendState}));
  EXPECT_EQ(step(Restoring, Event::Restored), (UpgradeStep{Opening, Action::LetOpen}));
  EXPECT_EQ(step(Opening, Event::Serving), (UpgradeStep{Idle, Action::HandOver}));
}

TEST(UpgradeSteps, OldProcessResumesIfAnUpgradeFailsAfterThePause) {
  EXPECT_EQ(step(Starting, Event::Failed), (UpgradeStep{Idle, Action::GiveUp}));
  for (const auto stage : {Pausing, Restoring, Opening})
    EXPECT_EQ(step(stage, Event::Failed), (UpgradeStep{Idle, Action::GiveUpAndResume}));
}

TEST(UpgradeSteps, UnexpectedMessageFailsTheUpgrade) {
  for (const auto event : {Event::Restored, Event::Serving})
    EXPECT_EQ(step(Starting, event), (UpgradeStep{Idle, Action::GiveUp}));
  EXPECT_EQ(step(Pausing, Event::Restored), (UpgradeStep{Idle, Action::GiveUpAndResume}));
  EXPECT_EQ(step(Restoring, Event::Serving), (UpgradeStep{Idle, Action::GiveUpAndResume}));
  EXPECT_EQ(step(Opening, Event::Ready), (UpgradeStep{Idle, Action::GiveUpAndResume}));
}

TEST(UpgradeSteps, EventOfAnEarlierUpgradeAndASecondUpgradeRequestAreIgnored) {
  for (const auto stage : {Idle, Starting, Restoring, Opening})
    EXPECT_EQ(step(stage, Event::Paused), (UpgradeStep{stage, Action::None}));
  for (const auto stage : {Starting, Pausing, Restoring, Opening})
    EXPECT_EQ(step(stage, Event::Begun), (UpgradeStep{stage, Action::None}));
  for (const auto event : {Event::Ready, Event::Restored, Event::Serving, Event::Failed})
    EXPECT_EQ(step(Idle, event), (UpgradeStep{Idle, Action::None}));
}

TEST(CarriedState, IsUnchangedAfterWritingAndReading) {
  const CarriedState left{.clock = base::Duration(-7),
                          .table = {1, ~std::uint64_t{0}},
                          .shared = {3, 4},
                          .upgraded = 5,
                          .failed = 6};
  const auto come = carried_state_of(lines_of(left));
  ASSERT_TRUE(come);
  EXPECT_EQ(come->clock, left.clock);
  EXPECT_EQ(come->table.k1, left.table.k1);
  EXPECT_EQ(come->shared.k0, 3u);
  EXPECT_EQ(come->upgraded, 5u);
  EXPECT_EQ(come->failed, 6u);
}

TEST(CarriedState, StateOfAnotherProtocolVersionOrWithInvalidOrMissingLinesIsRejected) {
  auto lines = lines_of(CarriedState{});
  lines[0] += "0";
  EXPECT_FALSE(carried_state_of(lines));
  lines = lines_of(CarriedState{});
  lines[3] = "-1";
  EXPECT_FALSE(carried_state_of(lines));
  lines = lines_of(CarriedState{});
  lines.pop_back();
  EXPECT_FALSE(carried_state_of(lines));
  EXPECT_FALSE(carried_state_of({}));
}

TEST(CarriedAlerts, AreUnchangedAfterWritingAndReading) {
  const std::vector<admin::AlertState> left{{.alert_id = "1.2",
                                             .firing = true,
                                             .undelivered = false,
                                             .since = base::TimePoint(base::Duration(-3)),
                                             .seen = 4},
                                            {.alert_id = "5.6",
                                             .firing = false,
                                             .undelivered = true,
                                             .since = base::TimePoint(base::Duration(7)),
                                             .seen = 0}};
  EXPECT_EQ(alerts_of(lines_of(left)), left);
  EXPECT_TRUE(alerts_of({"", "x", "1.2 2 0 1 1", "1.2 1 0 1"}).empty());
}

TEST(CarriedAlerts, AlertsOnClientsAreUnchangedAfterWritingAndReading) {
  std::vector<admin::AlertState> left;
  for (const char* text : {"api_key of ada", "203.0.113.7", ""})
    left.push_back({.alert_id = "1.2",
                    .firing = true,
                    .seen = 4,
                    .client = observe::NamedClient{{~std::uint64_t{0}, 7}, text}});
  EXPECT_EQ(alerts_of(lines_of(left)), left);
  EXPECT_EQ(alerts_of({"1.2 1 0 0 4 ada"}).at(0).client, std::nullopt);
}

TEST(CarriedAlerts, LongestListOfAlertsFitsIntoOneMessage) {
  const admin::AlertState longest{
      .alert_id = std::string(41, '9'),
      .firing = true,
      .since = base::TimePoint::max(),
      .seen = ~std::uint64_t{0},
      .client = observe::NamedClient{{~std::uint64_t{0}, ~std::uint64_t{0}},
                                     std::string(observe::SpaceSaving::kText, 'x')}};
  const std::vector<admin::AlertState> left(1'000, longest);
  auto ends = upgrade_channel();
  ASSERT_TRUE(ends);
  const auto lines = lines_of(left);
  ASSERT_EQ(lines.size(), kMostAlertLines);
  ASSERT_TRUE(send_message(ends->first.get(), "over", lines));
  UpgradeMessage message;
  ASSERT_EQ(receive_message(ends->second.get(), true, message), ReceiveResult::Message);
  EXPECT_FALSE(message.cut);
  EXPECT_EQ(alerts_of(message.lines).back(), longest);
}

TEST(UpgradeChannel, LinesAndDescriptorsArriveInTheOtherProcess) {
  auto ends = upgrade_channel();
  ASSERT_TRUE(ends);
  UpgradeMessage message;
  EXPECT_EQ(receive_message(ends->second.get(), false, message), ReceiveResult::Nothing);
  const std::vector<int> many(kMostDescriptors, STDIN_FILENO);
  ASSERT_TRUE(send_message(ends->first.get(), "listener", {"127.0.0.1:80", ""}, many));
  ASSERT_TRUE(send_message(ends->first.get(), "inherited"));
  ASSERT_EQ(receive_message(ends->second.get(), true, message), ReceiveResult::Message);
  EXPECT_EQ(message.word, "listener");
  EXPECT_EQ(message.lines, (std::vector<std::string>{"127.0.0.1:80", ""}));
  EXPECT_EQ(message.descriptors.size(), kMostDescriptors);
  ASSERT_EQ(receive_message(ends->second.get(), true, message), ReceiveResult::Message);
  EXPECT_EQ(message.word, "inherited");
  EXPECT_TRUE(message.lines.empty() && message.descriptors.empty());
  ends->first = net::OwnedDescriptor();
  EXPECT_FALSE(send_message(ends->first.get(), "over"));
}

TEST(UpgradeChannel, EndOfTheOtherProcessIsReported) {
  auto ends = upgrade_channel();
  ASSERT_TRUE(ends);
  ::close(ends->first.release());
  UpgradeMessage message;
  EXPECT_EQ(receive_message(ends->second.get(), true, message), ReceiveResult::End);
  EXPECT_FALSE(send_message(ends->second.get(), "ready"));
}

// Sends a connection through a HandoffSender. Standard input replaces the socket. Returns the connections
// that arrive.
std::vector<ReceivedConnection> passed(const proxy::ConnectionInfo& connection_info,
                                       const std::string& unread) {
  auto ends = upgrade_channel();
  net::asio::io_context context;
  std::vector<ReceivedConnection> arrived;
  bool ended = false;
  HandoffReceiver arrivals(context.get_executor(), std::move(ends->second),
                           {.take = [&](ReceivedConnection one) { arrived.push_back(std::move(one)); },
                            .lost = [] { ADD_FAILURE() << "no connection is lost"; },
                            .change_foreign_permits = [](const auto&) {},
                            .ended = [&] { ended = true; }});
  {
    HandoffSender handoff_sender(std::move(ends->first));
    EXPECT_EQ(handoff_sender.take(STDIN_FILENO, "127.0.0.1:80", connection_info, unread),
              proxy::HandoffResult::Yes);
  }
  context.run();
  EXPECT_FALSE(arrivals.are_expected());
  EXPECT_TRUE(ended);
  return arrived;
}

TEST(ConnectionHandoff, ConnectionArrivesWithItsAddressesCertificateSubjectAndUnreadBytes) {
  const http::ConnectionEnds ends{*base::IpAddress::parse("203.0.113.7"),
                                  *base::IpAddress::parse("2001:db8::1"), 51234, 443};
  const auto arrived = passed({.ends = ends,
                               .certificate_subject = "CN=a b,O=c",
                               .certificate = ":MIIB+/8=:",
                               .relayed = true,
                               .secure = true},
                              "GET / HTTP/1.1\r\n\nHost: x\n");
  ASSERT_EQ(arrived.size(), 1u);
  const auto& [socket, listener, told, unread] = arrived.front();
  EXPECT_GE(socket.get(), 0);
  EXPECT_EQ(listener, "127.0.0.1:80");
  EXPECT_EQ(told.ends, ends);
  EXPECT_EQ(told.certificate_subject, "CN=a b,O=c");
  EXPECT_EQ(told.certificate, ":MIIB+/8=:");
  EXPECT_TRUE(told.relayed && told.secure);
  EXPECT_EQ(unread, "GET / HTTP/1.1\r\n\nHost: x\n");
}

TEST(ConnectionHandoff, CertificateAndAddressesAreEachPassedOnIfTheOtherIsMissing) {
  auto arrived = passed(
      {.ends = {}, .certificate_subject = "", .certificate = ":MIIB+/8=:", .relayed = true, .secure = true},
      "");
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_FALSE(arrived.front().connection_info.ends);
  EXPECT_EQ(arrived.front().connection_info.certificate, ":MIIB+/8=:");
  const http::ConnectionEnds local{*base::IpAddress::parse("::1"), *base::IpAddress::parse("::1"), 51234,
                                   443};
  arrived = passed({.ends = local, .certificate_subject = "", .relayed = true}, "");
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived.front().connection_info.ends, local);
  EXPECT_EQ(arrived.front().connection_info.certificate, "");
}

// Older builds compare the whole second line with "relayed". They read four words of the third line
// (addresses and ports) and ignore the rest, so the certificate must follow these words.
TEST(ConnectionHandoff, CertificateIsSentWhereOlderVersionsIgnoreIt) {
  auto channel = upgrade_channel();
  HandoffSender handoff_sender(std::move(channel->first));
  const http::ConnectionEnds ends{*base::IpAddress::parse("203.0.113.7"),
                                  *base::IpAddress::parse("2001:db8::1"), 51234, 443};
  ASSERT_EQ(handoff_sender.take(STDIN_FILENO, "127.0.0.1:80",
                                {.ends = ends,
                                 .certificate_subject = "CN=a",
                                 .certificate = ":MIIB+/8=:",
                                 .relayed = true,
                                 .secure = true},
                                "GET"),
            proxy::HandoffResult::Yes);
  UpgradeMessage message;
  ASSERT_EQ(receive_message(channel->second.get(), false, message), ReceiveResult::Message);
  EXPECT_EQ(message.lines,
            (std::vector<std::string>{"127.0.0.1:80", "relayed",
                                      "203.0.113.7 51234 2001:db8::1 443 :MIIB+/8=:", "CN=a", "GET"}));
}

TEST(ConnectionHandoff, ConnectionWithoutAdditionalDataArrives) {
  const auto arrived = passed({}, "");
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_FALSE(arrived.front().connection_info.ends);
  EXPECT_FALSE(arrived.front().connection_info.relayed);
  EXPECT_EQ(arrived.front().connection_info.certificate_subject, "");
  EXPECT_EQ(arrived.front().connection_info.certificate, "");
  EXPECT_EQ(arrived.front().unread, "");
}

TEST(ConnectionHandoff, RelayedConnectionWithoutTlsArrivesAsRelayedAndNotSecure) {
  const auto arrived = passed({.ends = {}, .certificate_subject = "", .relayed = true}, "");
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_TRUE(arrived.front().connection_info.relayed);
  EXPECT_FALSE(arrived.front().connection_info.secure);
}

TEST(ConnectionHandoff, OnlyConnectionsSentBeforeTheReceiverEndsTheHandoffArrive) {
  auto ends = upgrade_channel();
  net::asio::io_context context;
  std::size_t arrived = 0;
  HandoffReceiver arrivals(context.get_executor(), std::move(ends->second),
                           {.take = [&](const ReceivedConnection&) { ++arrived; },
                            .lost = [] { ADD_FAILURE() << "no connection is lost"; },
                            .change_foreign_permits = [](const auto&) {},
                            .ended = [] { ADD_FAILURE() << "the channel has not ended"; }});
  HandoffSender handoff_sender(std::move(ends->first));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(handoff_sender.take(STDIN_FILENO, "127.0.0.1:80", {}, {}), proxy::HandoffResult::Yes);
  arrivals.end();
  EXPECT_EQ(arrived, 3u);
  EXPECT_FALSE(arrivals.are_expected());
  EXPECT_EQ(handoff_sender.take(STDIN_FILENO, "127.0.0.1:80", {}, {}), proxy::HandoffResult::Gone);
  arrivals.end();  // this second call of end() does nothing
  context.run();
  EXPECT_EQ(arrived, 3u);
}

// While an object of this class exists, the process can open no further file descriptors.
class NoDescriptorLeft {
 public:
  NoDescriptorLeft() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const net::OwnedDescriptor next(::dup(STDIN_FILENO));
    const rlimit none{static_cast<rlim_t>(next.get()), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptorLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptorLeft(const NoDescriptorLeft&) = delete;
  NoDescriptorLeft& operator=(const NoDescriptorLeft&) = delete;

 private:
  rlimit before_{};
};

TEST(ConnectionHandoff, ConnectionThatArrivesWithoutItsDescriptorIsReported) {
  auto ends = upgrade_channel();
  net::asio::io_context context;
  std::vector<std::string> told;
  HandoffReceiver arrivals(context.get_executor(), std::move(ends->second),
                           {.take = [&](const ReceivedConnection&) { told.emplace_back("taken"); },
                            .lost = [&] { told.emplace_back("lost"); },
                            .change_foreign_permits = [](const auto&) {},
                            .ended = [] {}});
  HandoffSender handoff_sender(std::move(ends->first));
  EXPECT_EQ(handoff_sender.take(STDIN_FILENO, "127.0.0.1:80", {}, {}), proxy::HandoffResult::Yes);
  {
    const NoDescriptorLeft none;
    context.run_one();
  }
  EXPECT_EQ(handoff_sender.take(STDIN_FILENO, "127.0.0.1:80", {}, {}), proxy::HandoffResult::Yes);
  arrivals.end();
  EXPECT_EQ(told, (std::vector<std::string>{"lost", "taken"}));
}

TEST(ConnectionHandoff, PermitChangesArriveInTheOtherProcess) {
  auto ends = upgrade_channel();
  net::asio::io_context context;
  std::vector<std::string> told;
  HandoffReceiver arrivals(context.get_executor(), std::move(ends->second),
                           {.take = [&](const ReceivedConnection&) { told.emplace_back("a connection"); },
                            .lost = [] { ADD_FAILURE() << "no connection is lost"; },
                            .change_foreign_permits =
                                [&](const std::vector<std::string>& lines) {
                                  told.insert(told.end(), lines.begin(), lines.end());
                                },
                            .ended = [&] { told.emplace_back("ended"); }});
  {
    HandoffSender handoff_sender(std::move(ends->first));
    handoff_sender.report_permits({"1 2 3 a", "1 2 -3 a"});
    EXPECT_EQ(handoff_sender.take(STDIN_FILENO, "127.0.0.1:80", {}, {}), proxy::HandoffResult::Yes);
  }
  context.run();
  EXPECT_EQ(told, (std::vector<std::string>{"1 2 3 a", "1 2 -3 a", "a connection", "ended"}));
}

TEST(ConnectionHandoff, RejectsAConnectionWithTooMuchDataForAMessage) {
  auto ends = upgrade_channel();
  HandoffSender handoff_sender(std::move(ends->first));
  const std::string half(32 << 10, 'x');
  EXPECT_EQ(handoff_sender.take(STDIN_FILENO, "", {.ends = {}, .certificate_subject = half}, half),
            proxy::HandoffResult::NotThis);
  EXPECT_EQ(handoff_sender.take(STDIN_FILENO, "",
                                {.ends = {}, .certificate_subject = "", .certificate = half + half}, ""),
            proxy::HandoffResult::NotThis);
  UpgradeMessage message;
  EXPECT_EQ(receive_message(ends->second.get(), false, message), ReceiveResult::Nothing);
}

TEST(CarriedTable, TruncatedTableOfKeysIsRejected) {
  limit::KeyTable table(100);
  auto state = write_state(table, {.names = {}, .saved_at = base::TimePoint(base::Duration(1))}, {});
  ASSERT_TRUE(state);
  EXPECT_EQ(state->keys, 0u);
  limit::KeyTable other(100);
  EXPECT_TRUE(read_state(state->file.get(), {}, {}, other));
  ASSERT_EQ(::ftruncate(state->file.get(), 16), 0);
  const auto cut = read_state(state->file.get(), {}, {}, other);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().message, "the state of limits ends early");
}

}  // namespace
}  // namespace weir::upgrade
