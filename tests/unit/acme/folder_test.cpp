#include "weir/acme/folder.hpp"

#include "weir/acme/certificate.hpp"
#include "weir/net/file.hpp"

#include <filesystem>
#include <fstream>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::acme {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const Names kNames{"www.example.com", "example.com"};
constexpr const char* kDirectory = "https://authority.example/dir";

class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    std::string pattern = testing::TempDir() + "weir-acme-XXXXXX";
    scratch_ = ::mkdtemp(pattern.data());
    path_ = scratch_ + "/a/acme";
    folder_.emplace(path_);
    EXPECT_TRUE(folder_->make());
  }
  ~FolderTest() override { std::filesystem::remove_all(scratch_); }

  [[nodiscard]] static unsigned mode_of(const std::string& file) {
    struct stat found {};
    return ::stat(file.c_str(), &found) == 0 ? found.st_mode & 0777U : 0;
  }

  std::string scratch_, path_;
  std::optional<Folder> folder_;
};

TEST_F(FolderTest, FolderInWhichOthersMayWriteIsAnError) {
  for (const ::mode_t mode : {0770, 0707}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_THAT(folder_->make().error().message,
                HasSubstr("\"" + path_ + "\", which has private keys; expected chmod 700"));
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
  EXPECT_TRUE(folder_->make());
}

TEST_F(FolderTest, OnlyOneProcessHoldsTheLockOfTheFolder) {
  {
    const auto first = folder_->lock();
    ASSERT_TRUE(first && *first);
    const auto second = Folder(path_).lock();
    ASSERT_TRUE(second);
    EXPECT_FALSE(*second);
  }
  const auto third = folder_->lock();
  EXPECT_TRUE(third && *third);
}

TEST_F(FolderTest, LockingTheFolderRemovesDraftFilesOlderThanAnHour) {
  const auto old = path_ + "/draft.old", young = path_ + "/draft.young";
  std::ofstream(old) << "a key\n";
  std::ofstream(young) << "a key\n";
  std::filesystem::last_write_time(old,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::minutes(61));
  const auto lock = folder_->lock();
  ASSERT_TRUE(lock && *lock);
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young));
}

TEST_F(FolderTest, AccountKeyIsCreatedOnceAndIsReadableOnlyByItsOwner) {
  const auto first = folder_->account(), second = folder_->account();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(jwk_of(*first), jwk_of(*second));
  EXPECT_EQ(mode_of(path_ + "/account.pem"), 0600U);
  EXPECT_EQ(mode_of(path_), 0700U);
}

TEST_F(FolderTest, InvalidAccountKeyIsAnErrorAndIsNotReplaced) {
  const auto file = path_ + "/account.pem";
  std::ofstream(file) << "no key\n";
  EXPECT_THAT(folder_->account().error().message,
              HasSubstr("cannot use \"" + file + "\": expected a private key"));
  EXPECT_EQ(*net::read_file(file), "no key\n");
}

TEST_F(FolderTest, UnreadableAccountKeyIsAnErrorAndIsNotReplaced) {
  const auto file = path_ + "/account.pem";
  std::filesystem::create_symlink("account.pem", file);  // a symbolic link to itself, which cannot be opened
  EXPECT_THAT(folder_->account().error().message, HasSubstr("cannot read \"" + file + "\": "));
  EXPECT_TRUE(std::filesystem::is_symlink(file));
}

TEST_F(FolderTest, PlaceholderDoesNotReplaceACertificateOfTheAuthority) {
  const auto file = certificate_file(path_, kNames);
  ASSERT_TRUE(folder_->keep_placeholder(kNames));
  EXPECT_TRUE(read_certificate(*net::read_file(file))->is_placeholder);
  EXPECT_EQ(mode_of(file), 0600U);
  const auto other = *make_placeholder({"other.example"});  // serves as a certificate from the authority
  ASSERT_TRUE(folder_->keep(kNames, kDirectory, other));
  ASSERT_TRUE(folder_->keep_placeholder(kNames));
  const auto text = net::read_file(file);
  EXPECT_EQ(*text, std::string("weir acme ") + kDirectory + "\n" + other);
  EXPECT_EQ(directory_in(*text), kDirectory);
  EXPECT_EQ(mode_of(file), 0600U);
  EXPECT_EQ(directory_in("-----BEGIN"), "");
}

TEST_F(FolderTest, PlaceholderReplacesAFileThatNoListenerCanUse) {
  const auto file = certificate_file(path_, kNames);
  const auto whole = *make_placeholder({"other.example"});
  const auto key = whole.substr(0, whole.find("-----BEGIN CERT"));
  for (const auto& broken :
       {std::string(), key, whole.substr(key.size()), whole + whole.substr(key.size(), 100),
        to_pem(*make_key()) + whole.substr(key.size())}) {
    std::ofstream(file, std::ios::trunc) << broken;
    ASSERT_TRUE(folder_->keep_placeholder(kNames));
    const auto info = read_certificate(*net::read_file(file));
    ASSERT_TRUE(info) << broken;
    EXPECT_EQ(info->names, sorted(kNames)) << broken;
  }
}

TEST_F(FolderTest, EachListOfNamesAndEachAuthorityHasItsOwnRetryTime) {
  EXPECT_FALSE(folder_->retry(kNames, kDirectory));
  const SysTime next{std::chrono::seconds(1'800'000'000)};
  ASSERT_TRUE(folder_->keep_retry(kNames, kDirectory, {3, next}));
  const auto found = folder_->retry(kNames, kDirectory);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->failures, 3U);
  EXPECT_EQ(found->next, next);
  const Names other{"www.example.com"};
  const std::string elsewhere = "https://other.example/dir";
  EXPECT_FALSE(folder_->retry(other, kDirectory));
  EXPECT_FALSE(folder_->retry(kNames, elsewhere));
  // Several weirs may share the folder by mistake. If their names or authorities differ, no weir overwrites
  // the retry time of another.
  ASSERT_TRUE(folder_->keep_retry(other, kDirectory, {1, next}));
  ASSERT_TRUE(folder_->keep_retry(kNames, elsewhere, {2, next}));
  EXPECT_EQ(folder_->retry(kNames, kDirectory)->failures, 3U);
  EXPECT_EQ(folder_->retry(other, kDirectory)->failures, 1U);
  EXPECT_EQ(folder_->retry(kNames, elsewhere)->failures, 2U);
}

TEST_F(FolderTest, RetryTimeOfAVeryLongNameCanBeStored) {
  std::string name = "example";
  while (name.size() < 240) name = "a-label-of-weir." + name;
  ASSERT_EQ(fault_in_name(name), "");
  const SysTime next{std::chrono::seconds(1'800'000'000)};
  ASSERT_TRUE(folder_->keep_retry({name}, kDirectory, {1, next}));
  EXPECT_TRUE(folder_->retry({name}, kDirectory));
}

TEST_F(FolderTest, PendingChallengesAreListedUntilTheyAreWithdrawn) {
  const PendingChallenge one{"t-1", ChallengeKind::Http01, "a.example", "t-1.thumb"},
      two{"t-2", ChallengeKind::TlsAlpn01, "b.example", "t-2.thumb"};
  ASSERT_TRUE(folder_->publish(two));
  ASSERT_TRUE(folder_->publish(one));
  EXPECT_THAT(Folder(path_).challenges(), testing::ElementsAre(one, two));
  folder_->withdraw_all();
  EXPECT_THAT(folder_->challenges(), IsEmpty());
}

}  // namespace
}  // namespace weir::acme
