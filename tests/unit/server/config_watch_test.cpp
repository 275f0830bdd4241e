#include "server/config_watch.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace weir::server {
namespace {

class ConfigWatchTest : public ::testing::Test {
 protected:
  ConfigWatchTest() {
    std::string pattern = ::testing::TempDir() + "weir_watch_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    write("a");
  }
  ~ConfigWatchTest() override { std::filesystem::remove_all(folder_); }

  // Replaces the file. Its net::FileStamp changes with its inode, even if the clock is too coarse to show
  // that time has passed.
  void write(const std::string& text) {
    std::ofstream(path() + ".new") << text;
    std::filesystem::rename(path() + ".new", path());
  }
  [[nodiscard]] std::string path() const { return folder_ + "/weir.toml"; }
  void read() { watch_.watch({{path(), net::stamp_of(path())}}); }

  ConfigWatch watch_;

 private:
  std::string folder_;
};

TEST_F(ConfigWatchTest, ChangeOfAFileIsReportedOnceItIsStable) {
  read();
  EXPECT_FALSE(watch_.has_changed());
  write("b");
  EXPECT_FALSE(watch_.has_changed()) << "the file may still be written";
  EXPECT_TRUE(watch_.has_changed());
  EXPECT_FALSE(watch_.has_changed()) << "reported already";
}

TEST_F(ConfigWatchTest, NothingIsReportedWhileTheFileKeepsChanging) {
  read();
  for (int i = 0; i < 5; ++i) {
    write(std::to_string(i));
    EXPECT_FALSE(watch_.has_changed());
  }
  EXPECT_TRUE(watch_.has_changed());
}

TEST_F(ConfigWatchTest, ChangeMadeWhileTheFileWasReadIsReported) {
  const auto before = net::stamp_of(path());
  write("b");
  watch_.watch({{path(), before}});
  EXPECT_FALSE(watch_.has_changed());
  EXPECT_TRUE(watch_.has_changed());
}

TEST_F(ConfigWatchTest, ChangeOfAFileThatWasAddedLaterIsReported) {
  watch_.watch({});
  watch_.add({{path(), net::stamp_of(path())}});
  EXPECT_FALSE(watch_.has_changed());
  write("b");
  EXPECT_FALSE(watch_.has_changed());
  EXPECT_TRUE(watch_.has_changed());
}

TEST_F(ConfigWatchTest, RemovedFileIsReported) {
  read();
  std::filesystem::remove(path());
  EXPECT_FALSE(watch_.has_changed());
  EXPECT_TRUE(watch_.has_changed());
}

TEST_F(ConfigWatchTest, ChangeOfAFileByWeirItselfIsNotReported) {
  read();
  write("of weir");
  watch_.note_replaced({path(), net::stamp_of(path())});
  EXPECT_FALSE(watch_.has_changed());
  EXPECT_FALSE(watch_.has_changed());
  write("of somebody");
  EXPECT_FALSE(watch_.has_changed());
  EXPECT_TRUE(watch_.has_changed());
}

}  // namespace
}  // namespace weir::server
