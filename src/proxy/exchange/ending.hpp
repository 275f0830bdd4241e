// What an exchange, or a part of one, came to.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::proxy {

enum class Ending : std::uint8_t {
  Answered,  // the client has its answer
  Close,     // there is nobody to answer, or nothing to say
  Abort,     // what was answered is not whole, and must not look so
};

// An error that weir answers itself. `what` is static text. A status of 0 is none.
struct LocalError {
  unsigned status = 0;
  std::string_view what{};

  [[nodiscard]] explicit operator bool() const noexcept { return status != 0; }
};

// What a part of an exchange returns that answers nothing itself: an error to be answered, or the end.
struct Outcome {
  LocalError error{};
  Ending ending = Ending::Close;  // where there is no error
};

}  // namespace weir::proxy
