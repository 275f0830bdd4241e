// Counts exceptions on the control thread. Logs the first one, and then none until the failed work has
// succeeded. Belongs to that thread.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <string_view>

namespace weir::admin {

class Faults {
 public:
  using Say = std::function<void(std::string_view)>;

  // `what`: the work, such as "admin: accepting". `say` may be empty.
  Faults(const char* what, const Say& say) : what_(what), say_(say) {}

  // REQUIRES that an exception is being handled.
  void note() noexcept {
    ++count_;
    if (said_ || !say_) return;
    try {
      said_ = true;
      try {
        throw;
      } catch (const std::exception& fault) {
        say_(std::string(what_) + " failed; weir continues: " + fault.what());
      }
    } catch (...) {  // no memory for the message: the next fault reports it
      said_ = false;
    }
  }
  void works() noexcept { said_ = false; }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  const char* const what_;
  const Say& say_;
  std::uint64_t count_ = 0;
  bool said_ = false;
};

}  // namespace weir::admin
