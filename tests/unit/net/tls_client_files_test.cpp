// Tests how weir's TLS client detects changes of its files, and which faults it reports.
#include "weir/net/tls_client_files.hpp"

#include "unit/net/tls.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace weir::net {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class TlsClientFiles : public ::testing::Test {
 protected:
  [[nodiscard]] TlsClientSettings all() const {
    return {.ca = folder.cert(), .cert = folder.cert(), .key = folder.key()};
  }
  [[nodiscard]] static std::string fault_of(const TlsClientSettings& settings) {
    const auto tried = try_files(settings);
    return tried ? "" : tried.error().message;
  }
  static void replace(const std::string& file, const std::string& by) {
    std::filesystem::copy_file(by, file, std::filesystem::copy_options::overwrite_existing);
  }

  Certificates folder;
  const Certificates other;
};

TEST_F(TlsClientFiles, DetectsAChangeOfAnyFile) {
  for (const auto& file : {folder.cert(), folder.key()}) {
    const auto before = stamps_of(all());
    EXPECT_EQ(stamps_of(all()), before);
    replace(file, other.key());
    EXPECT_NE(stamps_of(all()), before) << file;
  }
}

// weir tries an unreadable key again after the file's owner or permissions have changed.
TEST_F(TlsClientFiles, DetectsAChangeOfFilePermissions) {
  const auto key = all().key;
  const auto before = stamps_of(all());
  ASSERT_EQ(::chmod(key.c_str(), 0640), 0);
  EXPECT_NE(stamps_of(all()), before);
}

TEST_F(TlsClientFiles, DetectsAChangeOfTheSystemsCaFileIfNoCaFileIsConfigured) {
  ::setenv("SSL_CERT_FILE", folder.cert().c_str(), 1);
  const auto before = stamps_of({});
  const auto unverified = stamps_of({.verify = false});
  replace(folder.cert(), other.key());
  EXPECT_NE(stamps_of({}), before);
  EXPECT_EQ(stamps_of({.verify = false}), unverified) << "no CA file is used without verification";
  ::unsetenv("SSL_CERT_FILE");
}

TEST_F(TlsClientFiles, ReturnsTheExpiryOfTheClientCertificate) {
  EXPECT_TRUE(try_files(all()).value().not_after);
  EXPECT_FALSE(try_files({.ca = folder.cert()}).value().not_after);
}

TEST_F(TlsClientFiles, ErrorNamesTheFaultyFile) {
  const auto name = "\"" + folder.key() + "\"";
  replace(folder.key(), other.key());
  EXPECT_THAT(fault_of(all()), HasSubstr("the key " + name + " does not belong to the certificate"));
  std::ofstream(folder.key()) << "-----BEGIN PRIVATE";
  EXPECT_THAT(fault_of(all()), HasSubstr("the key " + name));
  std::filesystem::remove(folder.key());
  EXPECT_EQ(fault_of(all()), "the key " + name + " cannot be read: No such file or directory");
}

TEST_F(TlsClientFiles, DoesNotBlockOnANamedPipe) {
  std::filesystem::remove(folder.cert());
  ASSERT_EQ(::mkfifo(folder.cert().c_str(), 0600), 0);
  EXPECT_THAT(fault_of({.ca = folder.cert()}),
              EndsWith("cert.pem\" cannot be read: it is a pipe, not a regular file"));
}

}  // namespace
}  // namespace weir::net
