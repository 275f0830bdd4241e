#include "weir/ask/grpc_services.hpp"

#include "unit/ask/rls/protobuf.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>

namespace weir::ask {
namespace {

using namespace std::string_literals;
constexpr std::uint32_t kFile = 3, kSymbol = 4, kExtensions = 6, kServices = 7;  // fields of a request
constexpr std::uint32_t kFiles = 4, kServiceList = 6, kError = 7;                // fields of an answer

std::string request(std::uint32_t tag, const std::string& name) {
  std::string text;
  protozero::pbf_writer(text).add_string(tag, name);
  return text;
}

// Returns the names of the files in the answer to a request of gRPC reflection. `tag`: kFile or kSymbol.
// `name`: the name of the file or of the symbol.
std::vector<std::string> files_in_answer(std::uint32_t tag, const std::string& name) {
  const auto answer = proto_files().answer(request(tag, name)).value();
  std::vector<std::string> names;
  for (const auto& list : texts_in(answer, kFiles))
    for (const auto& file : texts_in(list, 1)) names.push_back(texts_in(file, 1).at(0));
  return names;
}

std::int64_t error_code_of(const std::string& request) {
  const auto answer = proto_files().answer(request).value();
  const auto errors = texts_in(answer, kError);
  if (errors.empty()) return 0;
  return static_cast<std::int64_t>(number_in(errors[0], 1));
}

TEST(Reflection, ListsTheServices) {
  const auto answer = proto_files().answer(request(kServices, "*")).value();
  std::vector<std::string> names;
  for (const auto& list : texts_in(answer, kServiceList))
    for (const auto& service : texts_in(list, 1)) names.push_back(texts_in(service, 1).at(0));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector{"envoy.service.ratelimit.v3.RateLimitService"s, "grpc.health.v1.Health"s,
                                "grpc.reflection.v1.ServerReflection"s,
                                "grpc.reflection.v1alpha.ServerReflection"s}));
}

TEST(Reflection, AnswerForASymbolIncludesTheImportedFiles) {
  for (const auto* symbol : {"envoy.service.ratelimit.v3.RateLimitService",
                             "envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit",
                             "envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit"}) {
    const auto files = files_in_answer(kSymbol, symbol);
    ASSERT_EQ(files.size(), 5U) << symbol;
    EXPECT_EQ(files[0], "envoy/service/ratelimit/v3/rls.proto");
    EXPECT_NE(std::find(files.begin(), files.end(), "google/protobuf/wrappers.proto"), files.end());
  }
}

TEST(Reflection, FileIsFoundByItsName) {
  EXPECT_EQ(files_in_answer(kFile, "grpc/health/v1/health.proto"),
            std::vector{"grpc/health/v1/health.proto"s});
}

TEST(Reflection, UnknownNamesAreNotFoundAndExtensionsAreNotImplemented) {
  EXPECT_EQ(error_code_of(request(kSymbol, "no.such.Thing")), 5);
  EXPECT_EQ(error_code_of(request(kFile, "none.proto")), 5);
  EXPECT_EQ(error_code_of(request(kExtensions, "grpc.health.v1.HealthCheckRequest")), 12);
  EXPECT_EQ(error_code_of(""), 12);
}

TEST(Reflection, AnswerRepeatsTheRequest) {
  const auto asked = request(kServices, "");
  EXPECT_EQ(texts_in(proto_files().answer(asked).value(), 2).at(0), asked);
}

TEST(Reflection, MalformedRequestHasNoAnswer) {
  EXPECT_FALSE(proto_files().answer("\x22\x7f"));
}

TEST(GrpcHealth, RequestNamesTheService) {
  EXPECT_EQ(health_service("").value(), "");
  EXPECT_EQ(health_service("\x0a\x01x").value(), "x");
  EXPECT_FALSE(health_service("\x0a\x05x"));
}

TEST(GrpcHealth, AnswerEncodesTheServingStatus) {
  std::string text;
  append_health(text, GrpcHealth::NotServing);
  EXPECT_EQ(text, "\x08\x02");
}

}  // namespace
}  // namespace weir::ask
