// Tests that the snapshot file is complete or missing, that only its owner may read it, and that weir renames
// an unusable file.
#include "server/process/snapshot_file.hpp"

#include "unit/config/configuration.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::server::test {
namespace {

using base::TimePoint;
using namespace std::chrono_literals;

constexpr TimePoint kSaved{std::chrono::microseconds{1'700'000'000'000'000}};

class SnapshotFileTest : public testing::Test {
 protected:
  void save(TimePoint at = kSaved) { SnapshotFile(path_, {}, log_).save(table_, {{1, 2}, at}, {}); }
  [[nodiscard]] bool is_found() { return SnapshotFile(path_, {}, log_).found().has_value(); }
  [[nodiscard]] bool is_set_aside() const {
    return !std::filesystem::exists(path_) && std::filesystem::exists(path_ + ".damaged");
  }

  config::test::Folder folder_;
  const std::string path_ = folder_.file("weir.state");
  log::Log log_{log::LogLevel::Off};
  limit::KeyTable table_{10};
};

TEST_F(SnapshotFileTest, IsReadableOnlyByItsOwnerAndLeavesNoTemporaryFile) {
  folder_.write("weir.state.new", "of a weir that was killed");
  save();
  EXPECT_TRUE(is_found());
  struct stat file {};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
  EXPECT_EQ(SnapshotFile(path_, {}, log_).found()->names.k1, 2);
}

TEST_F(SnapshotFileTest, FileCanBeReadAgainAfterACrash) {
  save();
  EXPECT_TRUE(is_found());
  EXPECT_TRUE(is_found());
}

TEST_F(SnapshotFileTest, DamagedFileIsRenamedAndANewFileIsWritten) {
  for (const auto& damage :
       {std::string(), std::string("weirkeys"), std::string("nothing of ours"), std::string(4096, '\0')}) {
    folder_.write("weir.state", damage);
    EXPECT_FALSE(is_found());
    EXPECT_TRUE(is_set_aside());
    save();
    EXPECT_TRUE(is_found());
  }
}

TEST_F(SnapshotFileTest, FolderWithTheNameOfTheFileIsRenamed) {
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(is_found());
  EXPECT_TRUE(is_set_aside());
}

// weir shifts the times in a snapshot to the machine's clock, even if that clock was changed by a large
// amount.
TEST_F(SnapshotFileTest, SnapshotWithATimeInTheFutureIsRead) {
  save(kSaved + 10'000h);
  EXPECT_TRUE(is_found());
}

TEST_F(SnapshotFileTest, NothingIsWrittenIfTheFolderIsMissing) {
  const auto nowhere = folder_.file("none/weir.state");
  SnapshotFile(nowhere, {}, log_).save(table_, {{}, kSaved}, {});
  EXPECT_FALSE(std::filesystem::exists(nowhere));
}

}  // namespace
}  // namespace weir::server::test
