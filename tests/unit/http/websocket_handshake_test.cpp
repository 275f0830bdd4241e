#include "weir/http/websocket_handshake.hpp"

#include "weir/http/head_parser.hpp"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

// The key of a client and the server's confirmation in the example of RFC 6455 §1.3.
constexpr std::string_view kKey = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr std::string_view kAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

std::string fault_of(const std::string& response_head, bool opens_websocket = true) {
  const auto request_head =
      "GET / HTTP/1.1\r\nHost: a\r\nsec-websocket-key: " + std::string(kKey) + "\r\n\r\n";
  RequestHead request;
  ResponseHead response;
  EXPECT_FALSE(parse_request_head(request_head, request));
  EXPECT_FALSE(parse_response_head(response_head, false, response));
  request.opens_websocket = opens_websocket;
  const auto* const fault = websocket_fault(request, response);
  return fault != nullptr ? fault : "";
}

std::string switching(std::string_view accept) {
  return "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " +
         std::string(accept) + "\r\n\r\n";
}

TEST(WebSocketHandshake, KeyOfTheExampleInRfc6455GetsItsAcceptValue) {
  EXPECT_EQ(websocket_accept(kKey), kAccept);
}

TEST(WebSocketHandshake, KeyIsWrittenAsBase64OfSixteenOctets) {
  EXPECT_EQ(websocket_key({'t', 'h', 'e', ' ', 's', 'a', 'm', 'p', 'l', 'e', ' ', 'n', 'o', 'n', 'c', 'e'}),
            kKey);
}

TEST(WebSocketHandshake, RejectsAResponse101ThatDoesNotConfirmTheKey) {
  EXPECT_EQ(fault_of(switching(kAccept)), "");
  EXPECT_NE(fault_of(switching("s3pPLMBiTxaQ9kYGzzhZRbK+xOO=")), "");
  EXPECT_NE(fault_of(switching("")), "");
  EXPECT_NE(fault_of("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"), "");
}

TEST(WebSocketHandshake, RejectsASuccessStatusOtherThan101) {
  EXPECT_NE(fault_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "");
  EXPECT_NE(fault_of("HTTP/1.1 204 No Content\r\n\r\n"), "");
  EXPECT_EQ(fault_of("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), "");
  EXPECT_EQ(fault_of("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"), "");
}

TEST(WebSocketHandshake, ResponseToARequestThatIsNoWebSocketHandshakeIsNotChecked) {
  EXPECT_EQ(fault_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false), "");
  EXPECT_EQ(fault_of(switching("another"), false), "");
}

}  // namespace
}  // namespace weir::http
