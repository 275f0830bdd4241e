// Tests how weir reads files that the configuration names. A faulty implementation may make a test hang
// instead of fail.
#include "weir/net/file.hpp"

#include "weir/net/owned_descriptor.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace weir::net {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string pattern = ::testing::TempDir() + "weir_file_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileTest() override { fs::remove_all(folder_); }
  FileTest(const FileTest&) = delete;
  FileTest& operator=(const FileTest&) = delete;

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] static std::string fault_of(const std::string& path) {
    const auto read = read_file(path);
    return read ? "none" : read.error().message;
  }

  fs::path folder_;
};

// Kubernetes mounts a secret as a link to a link to the folder of its newest version.
TEST_F(FileTest, FollowsSymbolicLinks) {
  fs::create_directory(path("version"));
  write("version/tls.key", std::string("a\0b", 3));
  fs::create_directory_symlink("version", path("..data"));
  fs::create_symlink("..data/tls.key", path("tls.key"));
  EXPECT_EQ(read_file(path("tls.key")).value(), std::string("a\0b", 3));
  EXPECT_FALSE(fault_of_file(path("tls.key")));
}

TEST_F(FileTest, RejectsAFileAboveTheMaximumSize) {
  constexpr std::size_t kMiB = 1 << 20;
  write("largest", std::string(kMiB, 'x'));
  write("larger", std::string(kMiB + 1, 'x'));
  EXPECT_EQ(read_file(path("largest"), kMiB).value().size(), kMiB);
  EXPECT_EQ(read_file(path("larger"), kMiB).error().message,
            "it is larger than 1 MiB, which is the most that is read");
}

TEST_F(FileTest, RejectsPipesSocketsDirectoriesAndDevicesWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const OwnedDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path("socket").copy(name.sun_path, sizeof name.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(fault_of(path("pipe")), "it is a pipe, not a regular file");
  EXPECT_EQ(fault_of(path("socket")), "it is a socket, not a regular file");
  EXPECT_EQ(fault_of(path(".")), "it is a directory, not a regular file");
  EXPECT_EQ(fault_of("/dev/zero"), "it is a device, not a regular file");
  EXPECT_EQ(fault_of(path("none")), "No such file or directory");
  EXPECT_EQ(fault_of_file(path("pipe")).value().message, "it is a pipe, not a regular file");
}

TEST_F(FileTest, ReadsAnUnnamedPipeToItsEndIfPipesAreAccepted) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const OwnedDescriptor reader(ends[0]);
  const auto name = "/dev/fd/" + std::to_string(reader.get());
  {
    const OwnedDescriptor writer(ends[1]);
    ASSERT_EQ(::write(writer.get(), "text", 4), 4);
  }
  EXPECT_EQ(fault_of(name), "it is a pipe, not a regular file");
  EXPECT_EQ(read_file(name, kLargestFile, UnnamedPipe::Accept).value(), "text");
  ASSERT_EQ(::mkfifo(path("named").c_str(), 0600), 0);
  EXPECT_FALSE(read_file(path("named"), kLargestFile, UnnamedPipe::Accept));
}

}  // namespace
}  // namespace weir::net
