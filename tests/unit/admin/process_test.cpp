#include "weir/admin/process.hpp"

#include <cstdio>
#include <memory>

#include <gtest/gtest.h>

namespace weir::admin {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File any_file() {
  return {std::fopen("/dev/null", "r"), std::fclose};
}

TEST(ProcessReader, ReportsTheMemoryAndTheOpenDescriptorsOfThisProcess) {
  const auto before = ProcessReader().read();
  ASSERT_TRUE(before);
  EXPECT_GT(before->resident_bytes, 1U << 20);
  EXPECT_GE(before->open_descriptors, 3U);
  const auto file = any_file();
  ASSERT_TRUE(file);
  EXPECT_EQ(ProcessReader().read()->open_descriptors, before->open_descriptors + 1);
  EXPECT_EQ(ProcessReader(false).read()->open_descriptors, before->open_descriptors + 1);
}

TEST(ProcessReader, CountsOpenDescriptorsOnlyRarelyOnAKernelThatDoesNotReportTheirNumber) {
  ProcessReader reader(false);
  const auto begin = ProcessReader::Clock::now();
  const auto before = reader.read(begin)->open_descriptors;
  const auto file = any_file();
  EXPECT_EQ(reader.read(begin + ProcessReader::kCountEvery / 2)->open_descriptors, before);
  EXPECT_EQ(reader.read(begin + ProcessReader::kCountEvery)->open_descriptors, before + 1);
}

}  // namespace
}  // namespace weir::admin
