// Counts the exceptions of one kind of work on the control thread. Logs the first exception, and then no
// further one until the work has succeeded again. Belongs to the control thread.
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

  // `what`: name of the work, such as "admin: accepting". `say` writes to the log; it may be empty.
  Faults(const char* what, const Say& say) : what_(what), say_(say) {}

  // Counts the exception that the caller is handling. REQUIRES a current exception.
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
    } catch (...) {  // no memory for the message: the next exception is logged instead
      said_ = false;
    }
  }
  // Must be called when the work has succeeded.
  void works() noexcept { said_ = false; }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  const char* const what_;
  const Say& say_;
  std::uint64_t count_ = 0;
  bool said_ = false;
};

}  // namespace weir::admin
