#include "weir/server/certificates.hpp"

#include "unit/net/tls.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace weir::server {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ListenerCertificates, AreReadAgainOnlyIfAFileChanged) {
  const net::Certificates folder;
  const net::Certificates other;
  const auto settings = folder.settings();
  auto read = ListenerCertificates::read(settings).value();
  const auto* first = read.context();
  EXPECT_FALSE(read.reread().value());
  EXPECT_EQ(read.context(), first);
  std::filesystem::copy_file(other.cert(), folder.cert(), std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(read.reread()) << "the key does not belong to the new certificate yet";
  EXPECT_EQ(read.context(), first);
  EXPECT_FALSE(read.reread().value()) << "the fault is reported once";
  std::filesystem::copy_file(other.key(), folder.key(), std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(read.reread().value());
  EXPECT_NE(read.context(), first);
}

TEST(ListenerCertificates, AreReadAgainIfASymbolicLinkPointsToAnotherFile) {
  const net::Certificates folder;
  const auto link = folder.cert() + ".link";
  std::filesystem::create_symlink(folder.cert(), link);
  auto settings = folder.settings();
  settings.certificates[0].cert = link;
  auto read = ListenerCertificates::read(settings).value();
  const auto copy = folder.cert() + ".copy";
  std::filesystem::copy_file(folder.cert(), copy);
  std::filesystem::remove(link);
  EXPECT_FALSE(read.reread()) << "the link points to a missing file";
  std::filesystem::create_symlink(copy, link);
  EXPECT_TRUE(read.reread().value());
}

TEST(ListenerCertificates, ReadingDoesNotBlockOnANamedPipe) {
  const net::Certificates folder;
  const auto settings = folder.settings();
  auto read = ListenerCertificates::read(settings).value();
  std::filesystem::remove(folder.cert());
  ASSERT_EQ(::mkfifo(folder.cert().c_str(), 0600), 0);
  const auto looked = read.reread();
  ASSERT_FALSE(looked);
  EXPECT_THAT(looked.error().message,
              HasSubstr("cert.pem\" cannot be read: it is a pipe, not a regular file"));
}

TEST(ListenerCertificates, WarnBeforeACertificateExpires) {
  const net::TlsSettings settings{.certificates = {{.cert = "a.crt", .key = "a.key", .ocsp = "a.ocsp"}}};
  const std::chrono::sys_seconds now{100h};
  const auto warnings = [&](std::chrono::seconds left, std::optional<std::chrono::sys_seconds> stapled = {}) {
    return find_warnings(settings, {{.not_after = now + left, .stapled_until = stapled}}, now);
  };
  const auto good = now + 1h;
  EXPECT_THAT(warnings(std::chrono::days(14), good), IsEmpty());
  EXPECT_THAT(warnings(std::chrono::days(13), good),
              ElementsAre("the certificate \"a.crt\" expires on 1970-01-18 (UTC)"));
  EXPECT_THAT(warnings(-1s, good), ElementsAre(HasSubstr("has expired")));
  EXPECT_THAT(warnings(std::chrono::days(90)),
              ElementsAre(HasSubstr("\"a.ocsp\" is for another certificate")));
  EXPECT_THAT(warnings(std::chrono::days(90), now), ElementsAre(HasSubstr("\"a.ocsp\" is out of date")));
  EXPECT_THAT(warnings(std::chrono::days(90), now + 1s), IsEmpty());
}

TEST(ListenerCertificates, WarnOfACertificateThatIsNeverPresented) {
  const net::TlsSettings settings{.certificates = {{"a.crt", "a.key"}, {"b.crt", "b.key"}}};
  const std::chrono::sys_seconds now{100h};
  const auto warnings = [&](std::optional<net::HiddenReason> hidden) {
    const auto good = now + std::chrono::days(90);
    return find_warnings(settings, {{.not_after = good}, {.not_after = good, .hidden = hidden}}, now);
  };
  EXPECT_THAT(warnings({}), IsEmpty());
  EXPECT_THAT(warnings(net::HiddenReason{.behind = 0}),
              ElementsAre("the certificate \"b.crt\" can never be used: \"a.crt\" before it has the same "
                          "names and key type; remove one of the two"));
  EXPECT_THAT(warnings(net::HiddenReason{}),
              ElementsAre(HasSubstr("\"b.crt\" can never be used: it contains no host name")));
}

}  // namespace
}  // namespace weir::server
