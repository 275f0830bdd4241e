// Tests changes of the keys file on the disk.
#include "server/process/keys_file_edit.hpp"

#include "unit/config/configuration.hpp"

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::server::test {
namespace {

using config::KeyEditFault;
using policy::ApiKeys;

class KeysFileEditTest : public testing::Test {
 protected:
  KeysFileEdit add(const std::string& key) {
    return edit_keys_file(path_, {.digest = ApiKeys::digest(key), .owner = policy::ApiKeyOwnerChange{}});
  }
  [[nodiscard]] std::string text() const { return config::test::contents(path_); }

  config::test::Folder folder_;
  const std::string path_ = folder_.write("keys.toml", "[[key]]\nkey = \"a\"\n");
};

TEST_F(KeysFileEditTest, FileIsReplacedAndKeepsItsMode) {
  ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(path_.c_str(), &before), 0);
  const auto done = add("b");
  ASSERT_EQ(done.edited.fault, KeyEditFault::None) << done.edited.why;
  ASSERT_EQ(::stat(path_.c_str(), &after), 0);
  EXPECT_NE(after.st_ino, before.st_ino) << "the file is replaced, not written in place";
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_gid, before.st_gid);
  EXPECT_EQ(done.edited.keys.size(), 2U);
  EXPECT_EQ(done.stamp, net::stamp_of(path_));
  EXPECT_NE(text().find(ApiKeys::hex_of(ApiKeys::digest("b"))), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(KeysFileEditTest, EditsMadeByHandAreKept) {
  ASSERT_EQ(add("b").edited.fault, KeyEditFault::None);
  folder_.write("keys.toml", text() + "[[key]]\nkey = \"c\"\n");
  EXPECT_EQ(add("d").edited.keys.size(), 4U);
}

TEST_F(KeysFileEditTest, FileBehindASymbolicLinkIsReplaced) {
  std::filesystem::create_directory(folder_.file("data"));
  std::filesystem::rename(path_, folder_.file("data/keys.toml"));
  std::filesystem::create_symlink("data/keys.toml", path_);
  ASSERT_EQ(add("b").edited.fault, KeyEditFault::None);
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_NE(config::test::contents(folder_.file("data/keys.toml")).find("sha256"), std::string::npos);
}

TEST_F(KeysFileEditTest, EditIsRefusedWhileAnotherProcessChangesTheFile) {
  const int other = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
  const auto before = text();
  const auto refused = add("b");
  EXPECT_EQ(refused.edited.fault, KeyEditFault::Busy);
  EXPECT_EQ(refused.edited.why, path_ + " is being changed by another process; try again");
  EXPECT_EQ(text(), before);
  ::close(other);
  EXPECT_EQ(add("b").edited.fault, KeyEditFault::None);
}

TEST_F(KeysFileEditTest, ErrorSaysWhyTheFileCannotBeReadOrReplaced) {
  std::filesystem::create_directory(path_ + ".new");  // so that no new file can be made
  const auto before = text();
  const auto refused = add("b");
  EXPECT_EQ(refused.edited.fault, KeyEditFault::Unwritable);
  EXPECT_EQ(refused.edited.why, path_ + " cannot be replaced: File exists");
  EXPECT_EQ(text(), before);
  std::filesystem::remove(path_);
  EXPECT_EQ(add("b").edited.fault, KeyEditFault::Unreadable);
}

TEST_F(KeysFileEditTest, ErrorSaysWhichRightsAreNeededIfOneIsMissing) {
  const auto folder = std::filesystem::path(path_).parent_path();
  std::filesystem::permissions(folder, std::filesystem::perms(0555));
  std::filesystem::permissions(path_, std::filesystem::perms(0666));
  constexpr uid_t kNobody = 65534;
  const auto user = ::geteuid();
  const auto tester = user == 0 ? kNobody : user;  // root may write everywhere
  const bool is_other_user = ::seteuid(tester) == 0;
  const auto refused = add("b");
  EXPECT_EQ(::seteuid(user), 0);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  ASSERT_TRUE(is_other_user) << "user " << tester << " is needed for this test";
  EXPECT_EQ(refused.edited.why, path_ +
                                    " cannot be replaced: Permission denied; weir's user must own the file, "
                                    "be in its group, and be allowed to write in its folder");
}

}  // namespace
}  // namespace weir::server::test
