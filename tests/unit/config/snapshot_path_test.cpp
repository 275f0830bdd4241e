#include "weir/config/snapshot_path.hpp"

#include "unit/config/configuration.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <unistd.h>

namespace weir::config::test {
namespace {

TEST(SnapshotPath, MayNameAFileInAnExistingFolder) {
  const Folder folder;
  EXPECT_FALSE(obstacle_to_snapshot(folder.file("weir.state")));
}

TEST(SnapshotPath, RejectsAMissingFolderAndAPathThatIsAFolder) {
  const Folder folder;
  EXPECT_TRUE(obstacle_to_snapshot(folder.file("none/weir.state")));
  EXPECT_TRUE(obstacle_to_snapshot(folder.file("")));
}

TEST(SnapshotPath, RejectsAFolderWithoutWritePermission) {
  const Folder folder;
  std::filesystem::permissions(folder.file(""), std::filesystem::perms(0555));
  const auto whoever = ::geteuid();
  constexpr uid_t kNobody = 65'534;
  if (whoever == 0) {  // root may write to any folder
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const auto obstacle = obstacle_to_snapshot(folder.file("weir.state"));
  ASSERT_EQ(::seteuid(whoever), 0);
  std::filesystem::permissions(folder.file(""), std::filesystem::perms(0755));
  ASSERT_TRUE(obstacle);
  EXPECT_THAT(*obstacle, testing::HasSubstr("where weir may not write"));
}

}  // namespace
}  // namespace weir::config::test
