#include "weir/base/siphash.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

namespace weir::base {
namespace {

// Returns the 16-byte SipHash-2-4 that OpenSSL computes, with which the tests compare weir's digests.
Digest128 by_openssl(SipKey key, const std::string& bytes) {
  EVP_MAC* mac = EVP_MAC_fetch(nullptr, "SIPHASH", nullptr);
  EVP_MAC_CTX* context = EVP_MAC_CTX_new(mac);
  std::size_t size = 16;
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
                                   OSSL_PARAM_construct_end()};
  Digest128 out;
  std::size_t written = 0;
  EVP_MAC_init(context, reinterpret_cast<const unsigned char*>(&key), sizeof key, parameters);
  EVP_MAC_update(context, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  EVP_MAC_final(context, reinterpret_cast<unsigned char*>(&out), &written, sizeof out);
  EVP_MAC_CTX_free(context);
  EVP_MAC_free(mac);
  EXPECT_EQ(written, 16U);
  return out;
}

TEST(SipHash, AgreesWithOpenSslForEveryInputLength) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (std::size_t length = 0; length <= 200; ++length) {
    const SipKey key{random(), random()};
    std::string bytes(length, '\0');
    for (auto& byte : bytes) byte = static_cast<char>(random());
    EXPECT_EQ(siphash128(key, bytes), by_openssl(key, bytes)) << "length " << length;
  }
}

TEST(SipHash, SameTextDividedIntoOtherPartsHasAnotherHash) {
  const SipKey key{1, 2};
  const auto of = [&](std::initializer_list<std::string_view> parts) {
    SipHash128 hash(key);
    for (const auto part : parts) hash.part(part);
    return hash.digest();
  };
  EXPECT_NE(of({"ab", "c"}), of({"a", "bc"}));
  EXPECT_NE(of({"ab", ""}), of({"ab"}));
  EXPECT_EQ(of({"ab", "c"}), of({"ab", "c"}));
}

}  // namespace
}  // namespace weir::base
