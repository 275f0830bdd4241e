#include "weir/http/grpc_health.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using namespace std::string_literals;

const auto kServing = "\0\0\0\0\2\x08\1"s;  // a gRPC message whose field 1 is 1 (SERVING)

std::string response(const std::string& message, const std::string& trailers = "grpc-status: 0\r\n") {
  auto text = "HTTP/1.1 200 \r\nContent-Type: application/grpc\r\n\r\n"s;
  if (!message.empty()) text += std::to_string(message.size()) + "\r\n" + message + "\r\n";
  return text + "0\r\n" + trailers + "\r\n";
}

TEST(GrpcHealth, RequestAboutTheWholeServerHasAnEmptyMessage) {
  EXPECT_EQ(grpc_health_request("host:1", ""),
            "POST /grpc.health.v1.Health/Check HTTP/1.1\r\nHost: host:1\r\nUser-Agent: weir-health\r\n"
            "Content-Type: application/grpc\r\nContent-Length: 5\r\n\r\n\0\0\0\0\0"s);
}

TEST(GrpcHealth, RequestAboutAServiceHasTheNameOfTheService) {
  EXPECT_TRUE(grpc_health_request("host", "a.B").ends_with("Length: 10\r\n\r\n\0\0\0\0\5\x0a\3a.B"s));
  const std::string name(200, 's');  // the length of this name takes two octets
  EXPECT_TRUE(grpc_health_request("host", name).ends_with("\0\0\0\0\xcb\x0a\xc8\1"s + name));
}

TEST(GrpcHealth, ServiceIsHealthyIfTheResponseSaysServing) {
  EXPECT_EQ(grpc_health_fault(response(kServing)), "");
  EXPECT_EQ(grpc_health_fault("HTTP/1.1 103 \r\nlink: a\r\n\r\n" + response(kServing)), "");
}

TEST(GrpcHealth, ErrorSaysWhyAServiceIsNotServing) {
  EXPECT_EQ(grpc_health_fault(response("\0\0\0\0\2\x08\2"s)), "it is NOT_SERVING");
  EXPECT_EQ(grpc_health_fault(response("\0\0\0\0\2\x08\3"s)), "it is SERVICE_UNKNOWN");
  EXPECT_EQ(grpc_health_fault(response("\0\0\0\0\0"s)), "it is UNKNOWN");
  EXPECT_EQ(grpc_health_fault(response("\0\0\0\0\2\x08\x63"s)), "it is 99");
}

TEST(GrpcHealth, ErrorSaysWhyAResponseIsUnusable) {
  EXPECT_EQ(grpc_health_fault(""), "its response is not HTTP");
  EXPECT_EQ(grpc_health_fault("HTTP/1.1 503 \r\ncontent-length: 0\r\n\r\n"), "it returns 503");
  EXPECT_EQ(grpc_health_fault("HTTP/1.1 200 \r\ngrpc-status: 12\r\ncontent-length: 0\r\n\r\n"),
            "its grpc-status is 12");
  EXPECT_EQ(grpc_health_fault(response(kServing, "")), "its response has no grpc-status");
  EXPECT_EQ(grpc_health_fault(response(kServing, "x: y\r\ngrpc-status: 14\r\n")), "its grpc-status is 14");
  EXPECT_EQ(grpc_health_fault(response("")), "its response has no message");
  EXPECT_EQ(grpc_health_fault(response("\1\0\0\0\2\x08\1"s)), "its response is compressed");
}

}  // namespace
}  // namespace weir::http
