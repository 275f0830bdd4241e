#include "weir/net/task.hpp"

#include <array>
#include <new>

namespace weir::net {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

// In builds with sanitizers, frames are not reused, because a sanitizer finds a use after free only in memory
// that is not reused.
void* take_frame(std::size_t size) {
  return ::operator new(size);
}
void give_back_frame(void* frame, std::size_t size) noexcept {
  ::operator delete(frame, size);
}

#else

namespace {

// Frame sizes are rounded up to 8, 24, 40, … bytes. A chunk of malloc has a multiple of 16 bytes, of which 8
// are its header, so these sizes waste no bytes. Waiting connections hold many small frames.
constexpr std::size_t kStep = 16;
constexpr std::size_t kHeader = 8;
constexpr std::size_t kClasses = 256;

constexpr std::size_t class_of(std::size_t size) noexcept {
  return (size + kHeader - 1) / kStep;
}

// Lists of free frames, one list for each size. A free frame stores the address of the next one.
class FreeFrames {
 public:
  ~FreeFrames() {
    for (auto*& head : heads_)
      while (head != nullptr) ::operator delete(std::exchange(head, head->next));
  }
  FreeFrames() = default;
  FreeFrames(const FreeFrames&) = delete;
  FreeFrames& operator=(const FreeFrames&) = delete;

  void* take(std::size_t index) {
    auto*& head = heads_[index];
    if (head == nullptr) return ::operator new((index + 1) * kStep - kHeader);
    return std::exchange(head, head->next);
  }
  void give_back(void* frame, std::size_t index) noexcept { heads_[index] = new (frame) Link{heads_[index]}; }

 private:
  struct Link {
    Link* next;
  };
  std::array<Link*, kClasses> heads_{};
};

thread_local FreeFrames free_frames;

}  // namespace

void* take_frame(std::size_t size) {
  const auto index = class_of(size);
  return index < kClasses ? free_frames.take(index) : ::operator new(size);
}

void give_back_frame(void* frame, std::size_t size) noexcept {
  const auto index = class_of(size);
  if (index < kClasses)
    free_frames.give_back(frame, index);
  else
    ::operator delete(frame);
}

#endif

}  // namespace weir::net
