#include "weir/http/grpc.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using namespace std::chrono_literals;

Fields fields_with(std::string_view name, std::string_view value, FieldId id = FieldId::Other) {
  Fields fields;
  fields.push_back({name, value, id});
  return fields;
}

TEST(Grpc, IsRecognisedByItsContentType) {
  for (const auto* type :
       {"application/grpc", "application/grpc+proto", "application/grpc; x=y", "Application/GRPC"})
    EXPECT_TRUE(is_grpc(fields_with("content-type", type, FieldId::ContentType))) << type;
  for (const auto* type : {"application/json", "application/grp", "application/grpc-web",
                           "application/grpcfoo", "text/application/grpc", ""})
    EXPECT_FALSE(is_grpc(fields_with("content-type", type, FieldId::ContentType))) << type;
  EXPECT_FALSE(is_grpc({}));
}

TEST(Grpc, MessagesAreInProtobufUnlessTheContentTypeNamesAnotherEncoding) {
  for (const auto* type : {"application/grpc", "application/grpc+proto", "application/grpc;x=y",
                           "application/grpc+Proto ; x=+json"})
    EXPECT_TRUE(is_grpc_in_protobuf(fields_with("content-type", type, FieldId::ContentType))) << type;
  for (const auto* type : {"application/grpc+json", "application/grpc+", "application/grpc+prot",
                           "application/grpc+proto2", "application/grpc+json; x=y", "application/json"})
    EXPECT_FALSE(is_grpc_in_protobuf(fields_with("content-type", type, FieldId::ContentType))) << type;
  EXPECT_FALSE(is_grpc_in_protobuf({}));
}

TEST(Grpc, EachHttpStatusOfWeirHasAGrpcStatus) {
  const std::pair<unsigned, unsigned> statuses[] = {{400, 3},  {401, 16}, {403, 7}, {404, 12}, {408, 4},
                                                    {413, 8},  {429, 8},  {431, 8}, {500, 13}, {502, 14},
                                                    {503, 14}, {504, 4},  {418, 2}, {200, 2}};
  for (const auto& [http, grpc] : statuses) EXPECT_EQ(grpc_status_of(http), grpc) << http;
}

TEST(Grpc, RefusalBecomesATrailersOnlyResponse) {
  Answer answer{.status = 429,
                .body = R"({"error":"rate_limit_exceeded","message":"Too many requests.","rule":"r"})"};
  std::string fields = "X-RateLimit-Limit: 2\r\nRetry-After: 30\r\n";
  answer.fields = fields;
  make_trailers_only(answer, fields);
  EXPECT_EQ(answer.status, 200U);
  EXPECT_EQ(answer.content_type, "application/grpc");
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(
      answer.fields,
      "X-RateLimit-Limit: 2\r\nRetry-After: 30\r\ngrpc-status: 8\r\ngrpc-message: Too many requests.\r\n"
      "grpc-retry-pushback-ms: 30000\r\n");
}

TEST(Grpc, OnlyAFieldNamedExactlyRetryAfterBecomesARetryPushback) {
  Answer answer{.status = 429, .body = ""};
  std::string fields = "X-Retry-After: soon\r\n";
  make_trailers_only(answer, fields);
  EXPECT_EQ(answer.fields.find("grpc-retry-pushback-ms"), std::string_view::npos) << answer.fields;
}

TEST(Grpc, ResponseWithoutRetryAfterHasNoRetryPushback) {
  Answer answer{.status = 403, .body = "<p>no JSON</p>"};
  std::string fields;
  make_trailers_only(answer, fields);
  EXPECT_EQ(answer.fields, "grpc-status: 7\r\ngrpc-message: Forbidden\r\n");
}

TEST(Grpc, MessageOfARefusalIsPercentEncoded) {
  Answer answer{.status = 500, .body = "{\"message\":\"100% \xc3\xa4\"}"};
  std::string fields;
  make_trailers_only(answer, fields);
  EXPECT_NE(fields.find("grpc-message: 100%25 %C3%A4\r\n"), std::string::npos) << fields;
}

TEST(Grpc, GrpcMessageFieldIsWrittenOnlyIfThereIsAMessage) {
  std::string fields = "a: b\r\n";
  append_grpc_status(fields, 0, "");
  EXPECT_EQ(fields, "a: b\r\ngrpc-status: 0\r\n");
  fields.clear();
  append_grpc_status(fields, 3, "a \"b\" of 100 %");
  EXPECT_EQ(fields, "grpc-status: 3\r\ngrpc-message: a \"b\" of 100 %25\r\n");
}

TEST(Grpc, TimeoutIsReadInAllSixUnits) {
  const std::pair<const char*, base::Duration> timeouts[] = {
      {"1H", 1h},  {"2M", 2min},   {"3S", 3s}, {"4m", 4ms},
      {"5u", 5us}, {"1500n", 2us}, {"0S", 0s}, {"99999999H", 99999999h}};
  for (const auto& [text, duration] : timeouts)
    EXPECT_EQ(grpc_timeout(fields_with("grpc-timeout", text)), duration) << text;
}

TEST(Grpc, InvalidTimeoutIsIgnored) {
  for (const auto* text : {"", "S", "1", "1x", "-1S", "+1S", "1.5S", " 1S", "123456789S", "1SS"})
    EXPECT_EQ(grpc_timeout(fields_with("grpc-timeout", text)), std::nullopt) << text;
  EXPECT_EQ(grpc_timeout({}), std::nullopt);
}

}  // namespace
}  // namespace weir::http
