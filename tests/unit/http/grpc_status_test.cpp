#include "weir/http/grpc_status.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

TEST(GrpcStatus, ParsesNamesAndNumbers) {
  EXPECT_EQ(parse_grpc_status("OK"), 0U);
  EXPECT_EQ(parse_grpc_status("UNAUTHENTICATED"), 16U);
  EXPECT_EQ(parse_grpc_status("8"), 8U);
  EXPECT_EQ(parse_grpc_status("16"), 16U);
  for (const auto* text : {"", "ok", "17", "-1", "8 ", "RESOURCE EXHAUSTED", "0x8", "99999999999"})
    EXPECT_FALSE(parse_grpc_status(text)) << text;
  for (unsigned status = 0; status <= kMostGrpcStatus; ++status)
    EXPECT_EQ(parse_grpc_status(grpc_status_name(status)), status);
  EXPECT_TRUE(grpc_status_names().starts_with("OK (0), CANCELLED (1), UNKNOWN (2)"));
  EXPECT_TRUE(grpc_status_names().ends_with("DATA_LOSS (15), UNAUTHENTICATED (16)"));
}

TEST(GrpcStatus, StatusOfATrailersOnlyResponseIsReadFromItsHead) {
  ResponseHead head;
  head.status = 200;
  for (const bool trailers_may_follow : {false, true}) {
    head.trailers_may_follow = trailers_may_follow;
    head.fields.clear();
    head.fields.push_back({"Grpc-Status", "7"});
    EXPECT_EQ(grpc_status_in_head(head), 7U);
    head.fields.clear();
    head.fields.push_back({"grpc-status", "seven"});
    EXPECT_EQ(grpc_status_in_head(head), kGrpcUnknown);
  }
}

TEST(GrpcStatus, HttpErrorIsMappedToAGrpcStatus) {
  const std::pair<unsigned, unsigned> statuses[] = {{400, 13}, {401, 16}, {403, 7},  {404, 12}, {429, 14},
                                                    {502, 14}, {503, 14}, {504, 14}, {500, 2},  {204, 2}};
  for (const auto& [http, grpc] : statuses) {
    ResponseHead head;
    head.status = http;
    head.trailers_may_follow = true;
    EXPECT_EQ(grpc_status_in_head(head), grpc) << http;
  }
}

TEST(GrpcStatus, StatusIsNotYetKnownAfterTheHeadIfTrailersMayFollow) {
  ResponseHead head;
  head.status = 200;
  head.framing = Framing::Length;  // over HTTP/2, trailers may also follow a body with a Content-Length
  head.trailers_may_follow = true;
  EXPECT_EQ(grpc_status_in_head(head), std::nullopt);
  head.trailers_may_follow = false;
  EXPECT_EQ(grpc_status_in_head(head), kGrpcUnknown) << "no trailers may follow";
}

TEST(GrpcStatus, StatusIsReadFromATrailerSection) {
  EXPECT_EQ(grpc_status_in_trailers("grpc-message: no\r\nGRPC-Status: \t16 \r\nx: y\r\n"), 16U);
  EXPECT_EQ(grpc_status_in_trailers("grpc-status:0\n"), 0U);
  EXPECT_EQ(grpc_status_in_trailers("grpc-status: 5"), 5U);
  for (const auto* lines : {"", "x: 1\r\n", "grpc-status\r\n", "grpc-status:\r\n", "grpc-status: 17\r\n",
                            "grpc-status: OK\r\n", "grpc-statuses: 1\r\n", "\r\n", "\n\n", ":\n"})
    EXPECT_EQ(grpc_status_in_trailers(lines), kGrpcUnknown) << lines;
}

}  // namespace
}  // namespace weir::http
