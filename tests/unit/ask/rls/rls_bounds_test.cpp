// Bounds of the messages of Envoy's rate limit service.
#include "weir/ask/rls.hpp"

#include <string>

#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>

namespace weir::ask {
namespace {

// Returns a call with one descriptor, which has `count` entries.
std::string call_with_entries(std::size_t count) {
  std::string text;
  protozero::pbf_writer call(text);
  call.add_string(1, "edge");
  protozero::pbf_writer descriptor(call, 2);
  for (std::size_t i = 0; i < count; ++i) {
    protozero::pbf_writer entry(descriptor, 1);
    entry.add_string(1, "key" + std::to_string(i));
    entry.add_string(2, "value");
  }
  return text;
}

TEST(RlsCall, DescriptorHasAtMostSixtyFourEntries) {
  const auto most = call_with_entries(64);
  const auto call = read_rls_call(most);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->descriptors.at(0).entries.size(), 64U);
  const auto wrong = read_rls_call(call_with_entries(65));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "a descriptor has more than 64 entries");
}

}  // namespace
}  // namespace weir::ask
