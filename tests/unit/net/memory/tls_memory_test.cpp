// The memory of OpenSSL. All tests of this program run with it, since it is set before main().
#include "weir/net/memory/tls_memory.hpp"

#include "net/memory/free_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>
#include <openssl/crypto.h>

namespace weir::net {
namespace {

const bool recycles = recycle_tls_memory();

constexpr std::size_t kSizes[] = {1,     8,     24,    25,    40,    1'000,  1'016,
                                  1'017, 1'100, 1'144, 1'145, 6'000, 16'709, 32'000};

TEST(FreeBlocks, ReusesABlockForTheSameSize) {
  for (const auto size : kSizes) {
    FreeBlocks blocks;
    void* const first = blocks.take(size);
    blocks.give_back(first);
    void* const second = blocks.take(size);
    EXPECT_EQ(second, first) << size;
    EXPECT_EQ(blocks.kept(), 0U) << size;
    blocks.give_back(second);
  }
}

TEST(FreeBlocks, ReturnsNoBlockThatIsTooSmall) {
  FreeBlocks blocks;
  for (std::size_t size = 1; size <= FreeBlocks::kLargest + 300; ++size) blocks.give_back(std::malloc(size));
  std::vector<void*> taken;
  for (std::size_t size = FreeBlocks::kLargest + 300; size > 0; --size) {
    taken.push_back(blocks.take(size));
    ASSERT_GE(::malloc_usable_size(taken.back()), size);
  }
  for (void* block : taken) blocks.give_back(block);
}

TEST(FreeBlocks, KeepsAtMostAMebibyte) {
  FreeBlocks blocks;
  std::vector<void*> taken;
  for (int i = 0; i < 400; ++i) taken.push_back(blocks.take(5'000));
  for (void* block : taken) {
    blocks.give_back(block);
    ASSERT_LE(blocks.kept(), FreeBlocks::kMostKept);
  }
  EXPECT_GT(blocks.kept(), FreeBlocks::kMostKept - 6'000);
  void* const huge = blocks.take(2 * FreeBlocks::kMostKept);
  const auto before = blocks.kept();
  blocks.give_back(huge);
  EXPECT_EQ(blocks.kept(), before);
}

struct TlsMemory : ::testing::Test {
  void SetUp() override {
    if (!recycles) GTEST_SKIP() << "builds with a sanitizer do not reuse memory";
  }
};

TEST_F(TlsMemory, IsReusedByTheThreadThatFreesIt) {
  void* const first = OPENSSL_malloc(16'709);
  OPENSSL_free(first);
  void* const second = OPENSSL_malloc(16'709);
  EXPECT_EQ(second, first);
  OPENSSL_free(second);
}

TEST_F(TlsMemory, KeepsItsContentWhenItGrows) {
  constexpr std::string_view kText = "content";
  auto* at = static_cast<char*>(OPENSSL_realloc(nullptr, kText.size()));
  std::copy(kText.begin(), kText.end(), at);
  for (const std::size_t size : {100, 5'000, 40'000, 80'000}) {
    at = static_cast<char*>(OPENSSL_realloc(at, size));
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(std::string_view(at, kText.size()), kText) << size;
    std::memset(at + kText.size(), 'x', size - kText.size());
  }
  EXPECT_EQ(OPENSSL_realloc(at, 0), nullptr);
  EXPECT_EQ(OPENSSL_malloc(0), nullptr);
}

TEST_F(TlsMemory, ThreadThatEndsFreesWhatItKept) {
  const auto in_thread = [] {
    std::vector<void*> blocks;
    for (int i = 0; i < 100; ++i) blocks.push_back(OPENSSL_malloc(8'000));
    for (void* block : blocks) OPENSSL_free(block);
  };
  std::thread(in_thread).join();  // makes what stays, such as the thread's heap
  const auto before = ::mallinfo2().uordblks;
  for (int i = 0; i < 5; ++i) std::thread(in_thread).join();
  EXPECT_LT(::mallinfo2().uordblks, before + 400'000);
}

}  // namespace
}  // namespace weir::net
