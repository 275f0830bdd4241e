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
  using Report = std::function<void(std::string_view)>;

  // `what`: name of the work, such as "admin: accepting". `report` writes to the log; it may be empty.
  Faults(const char* what, const Report& report) : what_(what), report_(report) {}

  // Counts the exception that the caller is handling. REQUIRES a current exception.
  void note() noexcept {
    ++count_;
    if (is_reported_ || !report_) return;
    try {
      is_reported_ = true;
      try {
        throw;
      } catch (const std::exception& fault) {
        report_(std::string(what_) + " failed; weir continues: " + fault.what());
      }
    } catch (...) {  // no memory for the message: the next exception is logged instead
      is_reported_ = false;
    }
  }
  // Must be called when the work has succeeded.
  void works() noexcept { is_reported_ = false; }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  const char* const what_;
  const Report& report_;
  std::uint64_t count_ = 0;
  bool is_reported_ = false;
};

}  // namespace weir::admin
