// Zeroed memory whose pages become resident when they are first written.
#pragma once

#include <cstddef>
#include <new>

#include <sys/mman.h>

namespace weir::limit {

class Pages {
 public:
  explicit Pages(std::size_t size) : size_(size) {
    void* at =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    at_ = static_cast<std::byte*>(at);
  }
  ~Pages() { munmap(at_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::byte* at(std::size_t offset) const noexcept { return at_ + offset; }

 private:
  std::byte* at_;
  std::size_t size_;
};

}  // namespace weir::limit
