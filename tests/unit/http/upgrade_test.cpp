#include "weir/http/upgrade.hpp"

#include "weir/http/forwarding.hpp"
#include "weir/http/head_parser.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

const std::vector<std::string> kAllowed{"websocket", "Chat/2"};

std::string asked(const std::string& lines, const std::string& line = "GET / HTTP/1.1") {
  const auto bytes = line + "\r\nHost: a\r\n" + lines + "\r\n\r\n";
  RequestHead head;
  if (const auto fault = parse_request_head(bytes, head)) return fault->what;
  return std::string(protocol_to_ask(head, kAllowed));
}

TEST(ProtocolToAsk, IsTheFirstProtocolInTheClientsListThatTheRouteAllows) {
  EXPECT_EQ(asked("Connection: upgrade\r\nUpgrade: websocket"), "websocket");
  EXPECT_EQ(asked("Connection: keep-alive , UPGRADE\r\nUpgrade: WebSocket"), "websocket");
  EXPECT_EQ(asked("Upgrade: h2c, chat/2\r\nConnection: upgrade\r\nUpgrade: websocket"), "Chat/2");
  EXPECT_EQ(asked("Connection: upgrade\r\nUpgrade: ,websocket"), "websocket");
}

TEST(ProtocolToAsk, IsEmptyForRequestsThatCannotUpgrade) {
  EXPECT_EQ(asked("Upgrade: websocket"), "");
  EXPECT_EQ(asked("Connection: upgrade"), "");
  EXPECT_EQ(asked("Connection: upgrade\r\nUpgrade: h2c"), "");
  EXPECT_EQ(asked("Connection: upgrade\r\nUpgrade: websocket/13"), "");
  EXPECT_EQ(asked("Connection: upgrade\r\nUpgrade: web socket"), "");
  EXPECT_EQ(asked("Connection: upgraded\r\nUpgrade: websocket"), "");
  EXPECT_EQ(asked("Connection: upgrade\r\nUpgrade: websocket", "GET / HTTP/1.0"), "");
  EXPECT_EQ(asked("Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1", "POST / HTTP/1.1"), "");
  EXPECT_EQ(
      asked("Connection: upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked", "POST / HTTP/1.1"),
      "");
}

TEST(ProtocolToAsk, PreviousUpgradeRequestDoesNotAffectTheNextRequest) {
  RequestHead head;
  const std::string first = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
  ASSERT_FALSE(parse_request_head(first, head));
  EXPECT_TRUE(head.wants_upgrade);
  const std::string second = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n";
  ASSERT_FALSE(parse_request_head(second, head));
  EXPECT_FALSE(head.wants_upgrade);
}

bool agrees(const std::string& lines, const std::string& line = "HTTP/1.1 101 Switching Protocols") {
  const auto bytes = line + "\r\n" + lines + "\r\n\r\n";
  ResponseHead head;
  return !parse_response_head(bytes, false, head) && switches_to(head, "websocket");
}

TEST(SwitchesTo, IsTrueOnlyForAValid101ResponseWithTheRequestedProtocol) {
  EXPECT_TRUE(agrees("Connection: Upgrade\r\nUpgrade: WebSocket"));
  EXPECT_TRUE(agrees("Upgrade: websocket\r\nConnection: keep-alive, upgrade\r\nContent-Length: 5"));
  EXPECT_FALSE(agrees("Connection: upgrade"));
  EXPECT_FALSE(agrees("Upgrade: websocket"));
  EXPECT_FALSE(agrees("Connection: upgrade\r\nUpgrade: h2c"));
  EXPECT_FALSE(agrees("Connection: upgrade\r\nUpgrade: websocket, h2c"));
  EXPECT_FALSE(agrees("Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c"));
  EXPECT_FALSE(agrees("Connection: upgrade\r\nUpgrade: websocket", "HTTP/1.0 101 Switching Protocols"));
}

TEST(MayBeAllowed, RouteCannotAllowHttpOrTlsAsUpgradeProtocol) {
  for (const char* name : {"websocket", "IRC/6.9", "chat", "postgres"})
    EXPECT_TRUE(may_be_allowed(name)) << name;
  for (const char* name :
       {"", "h2c", "H2C", "h2", "HTTP/2.0", "tls/1.2", "TLS", "a b", "a/", "/b", "a,b", "a/b/c"})
    EXPECT_FALSE(may_be_allowed(name)) << name;
}

TEST(WriteRequestHead, ForwardsOnlyTheAllowedUpgradeProtocol) {
  const std::string bytes =
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, X-Secret\r\nX-Secret: 1\r\nUpgrade: h2c, "
      "websocket\r\n\r\n";
  RequestHead head;
  ASSERT_FALSE(parse_request_head(bytes, head));
  std::string out;
  write_request_head(
      out, head,
      {.peer = "b", .proto = "http", .request_id = "c", .upgrade = protocol_to_ask(head, kAllowed)});
  EXPECT_EQ(out,
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-Forwarded-For: b\r\n"
            "X-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\nX-Request-ID: c\r\nVia: 1.1 weir\r\n\r\n");
}

TEST(WriteSwitchHead, WritesTheUpgradeProtocolAndNoBodyFraming) {
  const std::string bytes =
      "HTTP/1.1 101 Switching\r\nUpgrade: WEBSOCKET\r\nConnection: upgrade, x-one\r\nX-One: "
      "1\r\nContent-Length: 5\r\n"
      "Sec-WebSocket-Accept: x\r\n\r\n";
  ResponseHead head;
  ASSERT_FALSE(parse_response_head(bytes, false, head));
  std::string out;
  write_switch_head(out, head, "websocket", "X: y\r\n");
  EXPECT_EQ(
      out,
      "HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
      "X: y\r\n\r\n");
}

}  // namespace
}  // namespace weir::http
