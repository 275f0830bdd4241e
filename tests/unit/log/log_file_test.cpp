#include "log/log_file.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace weir::log {
namespace {

namespace fs = std::filesystem;

// Limits the size of files to imitate a full disk: a file at its limit accepts a part of the data, and then
// writing fails.
class LogFileTest : public ::testing::Test {
 protected:
  LogFileTest() {
    std::string name = (fs::temp_directory_path() / "weir-log-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
  }
  ~LogFileTest() override {
    let_grow();
    fs::remove_all(folder_);
  }

  void bound_size(rlim_t octets) const {
    const rlimit bound{octets, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &bound);
  }
  void let_grow() const { ::setrlimit(RLIMIT_FSIZE, &before_); }

  [[nodiscard]] std::string name() const { return folder_ / "access.log"; }
  [[nodiscard]] std::string text() const {
    std::ifstream in(name());
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
  rlimit before_{};
};

TEST_F(LogFileTest, IsReadableOnlyByItsOwnerAndGroup) {
  const auto mask = ::umask(0);
  const LogFile file(name());
  ::umask(mask);
  EXPECT_EQ(fs::status(name()).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
}

TEST_F(LogFileTest, LostLinesAreCountedAndAPartlyWrittenLineIsEnded) {
  LogFile file(name());
  bound_size(8);
  const auto full = file.append("one\ntwo\nthree\nfour\n");
  EXPECT_EQ(full.lost, 2U);
  EXPECT_EQ(full.error, EFBIG);
  bound_size(10);
  const auto torn = file.append("three\nfour\n");
  EXPECT_EQ(torn.lost, 2U);
  EXPECT_EQ(text(), "one\ntwo\nth");
  // The file has 10 octets, its limit. So weir cannot even write the line break that ends the line "th".
  const auto nothing = file.append("five\n");
  EXPECT_EQ(nothing.lost, 1U);
  let_grow();
  const auto again = file.append("six\n");
  EXPECT_EQ(again.lost, 0U);
  EXPECT_EQ(again.error, 0);
  EXPECT_EQ(text(), "one\ntwo\nth\nsix\n");
}

TEST_F(LogFileTest, LineThatLacksOnlyItsLineFeedIsNotCountedAsLost) {
  LogFile file(name());
  bound_size(7);
  const auto full = file.append("one\ntwo\nthree\n");
  EXPECT_EQ(full.lost, 1U);
  let_grow();
  EXPECT_EQ(file.append("four\n").lost, 0U);
  EXPECT_EQ(text(), "one\ntwo\nfour\n");
}

TEST_F(LogFileTest, IncompleteLineOfAnEarlierProcessIsEndedBeforeTheFirstNewLine) {
  std::ofstream(name()) << "one\ntw";
  LogFile file(name());
  EXPECT_EQ(file.append("three\n").lost, 0U);
  EXPECT_EQ(text(), "one\ntw\nthree\n");
}

TEST_F(LogFileTest, NewFileAfterAReopenDoesNotBeginWithALineBreak) {
  LogFile file(name());
  bound_size(2);
  EXPECT_EQ(file.append("one\n").lost, 1U);
  let_grow();
  fs::rename(name(), name() + ".1");
  EXPECT_EQ(file.reopen(), 0);
  EXPECT_EQ(file.append("two\n").lost, 0U);
  EXPECT_EQ(text(), "two\n");
  fs::remove_all(folder_);
  EXPECT_EQ(file.reopen(), ENOENT);
  EXPECT_EQ(file.append("three\n").lost, 0U);  // written to the old file, whose name was removed
}

}  // namespace
}  // namespace weir::log
