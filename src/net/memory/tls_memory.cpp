#include "weir/net/memory/tls_memory.hpp"

#include "net/memory/free_blocks.hpp"

#include <cstdlib>
#include <cstring>

#include <openssl/crypto.h>

namespace weir::net {

namespace {

// OpenSSL frees its memory of a thread, and in the main thread all its memory, after the destructors of
// thread-local objects have run.
thread_local bool has_ended = false;

struct ThreadBlocks : FreeBlocks {
  ~ThreadBlocks() { has_ended = true; }
};
thread_local ThreadBlocks free_blocks;

// The next three functions replace malloc(3), realloc(3) and free(3) (CRYPTO_set_mem_functions(3)).
void* allocate(std::size_t size, const char*, int) {
  if (size == 0) return nullptr;
  return has_ended ? std::malloc(size) : free_blocks.take(size);
}

void release(void* block, const char*, int) {
  if (block == nullptr) return;
  if (has_ended)
    std::free(block);
  else
    free_blocks.give_back(block);
}

void* reallocate(void* block, std::size_t size, const char* file, int line) {
  if (block == nullptr) return allocate(size, file, line);
  if (size == 0) {
    release(block, file, line);
    return nullptr;
  }
  const auto room = ::malloc_usable_size(block);
  if (size <= room) return block;
  if (size > FreeBlocks::kLargest) return std::realloc(block, size);
  void* larger = allocate(size, file, line);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, block, room);
  release(block, file, line);
  return larger;
}

}  // namespace

bool recycle_tls_memory() noexcept {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return CRYPTO_set_mem_functions(allocate, reallocate, release) == 1;
#endif
}

}  // namespace weir::net
